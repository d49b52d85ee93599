#include "transports/tcp/connect/tcp_sockets.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/far_link.h"
#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/net/congestion.h"
#include "src/net/local_socket.h"
#include "src/net/traffic_class.h"
#include "transports/peer_closed.h"
#include "transports/tcp/flow/flight_limit.h"
#include "transports/tcp/frames/frame.h"
#include "transports/tcp/link/routes.h"

namespace seto::tcp {
namespace {

constexpr std::uint32_t kTermsMagic = 0x0e70'7e36;

// Little-endian, as is every machine that this library runs on.
struct Greeting {
  std::uint32_t magic = kTermsMagic;
  std::uint32_t sockets = 0;
  std::uint32_t round_trip_us = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Greeting) == 16);

Status lost(int error) { return failure(Code::remote_error, "%s: %s", kPeerClosed, std::strerror(error)); }

// The socket's buffers are empty and larger than a greeting, so it is sent whole.
Result<LinkTerms> exchange_terms(SecureStream& socket, const SocketWish& wish, Deadline until) {
  const LinkTerms own{wish.set, round_trip_us(socket.get())};
  const Greeting mine{kTermsMagic, own.sockets, own.round_trip_us, 0};
  if (!socket.send_whole({reinterpret_cast<const char*>(&mine), sizeof mine})) return lost(errno);
  Greeting theirs;
  for (std::size_t have = 0; have < sizeof theirs;) {
    // First the read: the handshake may have taken the greeting from the socket.
    const ssize_t got = socket.receive(reinterpret_cast<char*>(&theirs) + have, sizeof theirs - have);
    if (got < 0 && errno == EAGAIN) {
      if (const Status waited = wait_for(socket.get(), POLLIN, until); !waited.ok())
        return failure(waited.code(), "its process did not say how many sockets it wants before the deadline of the init");
      continue;
    }
    if (got <= 0) return lost(got == 0 ? ECONNRESET : errno);
    have += static_cast<std::size_t>(got);
  }
  if (theirs.magic != kTermsMagic || theirs.sockets > kMostSockets)
    return failure(Code::remote_error, "its process sent terms of a connection that are malformed");
  return LinkTerms::agree(own, {theirs.sockets, theirs.round_trip_us}, wish);
}

}  // namespace

void prepare_tcp_socket(int fd) {
  mark_traffic(fd, TrafficClass::data);
  const std::string control = choose_congestion_control(fd);
  SETO_LOG(debug, "a data socket has the congestion control %s", control.c_str());
}

Result<SecureStream> open_tcp_socket(TcpConnector& connector, const ConnectRequest& request) {
  SETO_ASSIGN(SecureStream socket, connector.connect(request));
  prepare_tcp_socket(socket.get());
  return socket;
}

std::uint32_t SocketWish::sockets(std::uint32_t round_trip_us) const {
  SocketNeed whole = need;
  whole.round_trip_s = round_trip_us * 1e-6;
  const std::uint32_t of_route = set != kAutomaticSockets ? set : sockets_for(whole);
  const std::uint32_t ways = routes_of(round_trip_us);
  return std::min(of_route, kMostSockets / ways) * ways;
}

std::uint32_t SocketWish::routes_of(std::uint32_t round_trip_us) const {
  return resume != Resume::off && is_far(round_trip_us) ? routes : 1;
}

bool SocketWish::continues(std::uint32_t sockets, std::uint32_t round_trip_us) const {
  return resume != Resume::off && (is_far(round_trip_us) || (resume == Resume::on && sockets > 1));
}

std::uint32_t SocketWish::rails(std::uint32_t most, std::uint32_t sockets, std::uint32_t round_trip_us) const {
  if (resume == Resume::off || is_far(round_trip_us)) return 0;
  return std::min(most, kMostSockets - std::min(sockets, kMostSockets));
}

bool SocketWish::adapts(std::uint32_t sockets, std::uint32_t round_trip_us) const {
  return set == kAutomaticSockets && routes_of(round_trip_us) == 1 && continues(sockets, round_trip_us) &&
         round_trip_us >= FlightLimit::kLeastRoundTripUs;
}

Resume agree(Resume one, Resume other) {
  if (one == Resume::off || other == Resume::off) return Resume::off;
  return one == Resume::on ? one : other;
}

LinkTerms LinkTerms::agree(const LinkTerms& one, const LinkTerms& other, const SocketWish& wish) {
  const bool both_know = one.round_trip_us != 0 && other.round_trip_us != 0;
  LinkTerms terms{std::max(one.sockets, other.sockets), both_know ? std::min(one.round_trip_us, other.round_trip_us)
                                                                  : std::max(one.round_trip_us, other.round_trip_us)};
  SocketWish agreed = wish;
  agreed.set = terms.sockets;
  terms.sockets = agreed.sockets(terms.round_trip_us);
  return terms;
}

// The answerer takes one connection after another: they have all been called at once and wait for it.
Result<TcpSockets> open_tcp_sockets(TcpConnector& connector, ControlChannels& channels, const ConnectRequest& first,
                                    const SocketWish& wish, std::shared_ptr<ControlChannel> channel) {
  SETO_ASSIGN(const TcpConnector::Plan plan, connector.plan(first));
  TcpSockets opened;
  SETO_ASSIGN(SecureStream first_socket, open_tcp_socket(connector, first));
  SETO_ASSIGN(const LinkTerms terms, exchange_terms(first_socket, wish, first.until));
  opened.round_trip_us = terms.round_trip_us;
  opened.routes = wish.routes_of(terms.round_trip_us);
  opened.adapts = wish.adapts(terms.sockets, terms.round_trip_us);
  opened.sockets.resize(terms.sockets);
  opened.sockets[0] = std::move(first_socket);
  opened.channel = std::move(channel);
  const bool opens_channel = opened.channel == nullptr;
  // Number 0 opens the control channel, each other number a socket.
  const auto open = [&](std::size_t number, const std::atomic<bool>&) -> Status {
    ConnectRequest request = first;
    request.index = static_cast<std::uint32_t>(number);
    request.path = path_to_request(number, terms.sockets, opened.routes);
    if (number == 0 && opens_channel) {
      SETO_ASSIGN(opened.channel, channels.connect(request));
    } else if (number > 0) {
      SETO_ASSIGN(opened.sockets[number], open_tcp_socket(connector, request));
    }
    return {};
  };
  SETO_TRY(side_by_side(terms.sockets, plan.calls ? terms.sockets : 1, open));
  return opened;
}

}  // namespace seto::tcp
