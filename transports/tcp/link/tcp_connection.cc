#include "transports/tcp/link/tcp_connection.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/clock.h"
#include "src/net/tcp_delivery.h"

namespace seto::tcp {
namespace {

// A link can break because the peer's context has ended, although its process lives; the control channel then reports the end. If
// no report arrives within this time, the network has broken the link.
constexpr std::uint64_t kEndReportNs = 500'000'000;

}  // namespace

TcpConnection::TcpConnection(const PeerContext& peer, Parts parts)
    : Connection(peer, Reach::network, std::move(parts.way)),
      round_trip_us_(parts.round_trip_us),
      link_(std::move(parts.link)),
      channel_(std::move(parts.channel)) {
  on_death_ = channel_->on_death([this, wakeup = std::move(parts.wakeup)] {
    link_->give_up();
    ended_.store(true, std::memory_order_release);
    wakeup->ring();
  });
}

bool TcpConnection::link_lost() const {
  const std::uint64_t since = link_->broken_since();
  return since != 0 && monotonic_ns() - since > kEndReportNs;
}

std::string TcpConnection::why_dead() const {
  if (channel_->dead()) return channel_->why();
  if (link_->broken()) return std::string(link_->why().text());
  return "its process has ended";
}

std::optional<Connection::Sockets> TcpConnection::ask_sockets() const {
  const auto shorter = [](std::uint32_t known, std::uint32_t other) {
    return known == 0 || (other != 0 && other < known) ? other : known;
  };
  Sockets all;
  const std::vector<OpenSocket> sockets = link_->open_sockets();
  all.open = static_cast<std::uint32_t>(sockets.size());
  all.all_broke = sockets.empty() && link_->was_open();
  all.paths = static_cast<std::uint32_t>(link_->routes());
  // Rails and sockets are two media of one path of the network.
  const std::size_t best = link_->route();
  if (link_->rails() == 0) {
    all.path = static_cast<std::uint32_t>(best);
    all.used_paths = link_->used_routes();
  }
  for (const auto& [route, delivery, way] : sockets) {
    if (!delivery) continue;
    all.bytes_sent += delivery->bytes_sent;
    all.bytes_resent += delivery->bytes_resent;
    if (route != best) continue;
    all.round_trip_us = shorter(all.round_trip_us, delivery->now_us);
    all.shortest_round_trip_us = shorter(all.shortest_round_trip_us, delivery->round_trip_us);
  }
  return all;
}

// The ways are few, and those over sockets have the same first word. Beside rails, sockets carry long payloads only.
std::string TcpConnection::way_now() const {
  const std::uint32_t used = link_->used_routes();
  std::vector<OpenSocket> sockets = link_->open_sockets();
  std::stable_sort(sockets.begin(), sockets.end(), [](const auto& one, const auto& other) { return one.route < other.route; });
  std::vector<std::string> ways;
  for (const OpenSocket& socket : sockets)
    if ((used >> socket.route & 1U) != 0 && std::find(ways.begin(), ways.end(), socket.way) == ways.end())
      ways.push_back(socket.way);
  std::string text;
  std::string_view medium;
  for (const std::string& way : ways) {
    const std::string_view its = std::string_view(way).substr(0, way.find(' '));
    text += text.empty()    ? way
            : its == medium ? ", " + way.substr(std::min(its.size() + 1, way.size()))
                            : ", long payloads: " + way;
    medium = its;
  }
  return text;
}

TcpConnection::Signs TcpConnection::signs_of_data() const {
  const std::uint32_t used = link_->used_routes();
  Signs signs;
  for (const OpenSocket& socket : link_->open_sockets()) {
    if (!socket.delivery || (used >> socket.route & 1U) == 0) continue;
    signs.silent_ms = std::min(signs.silent_ms, socket.delivery->silent_ms);
    const std::uint32_t unheard_ms = socket.delivery->unheard_ms;
    if (unheard_ms > 0 && (signs.unheard_ms == 0 || unheard_ms < signs.unheard_ms)) signs.unheard_ms = unheard_ms;
  }
  return signs;
}

}  // namespace seto::tcp
