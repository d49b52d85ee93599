#include "src/core/dump/status_format.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/json_writer.h"
#include "src/codec/codec.h"
#include "src/core/call/ids.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/dump_file.h"
#include "src/core/dump/dump_format.h"
#include "src/engine/coding.h"
#include "src/net/tcp_delivery.h"
#include "transports/moving_way.h"

namespace seto {
namespace {

constexpr std::size_t kMostCommunicators = 64;
constexpr std::size_t kMostLinks = 256;
constexpr std::size_t kMostSites = 64;
constexpr std::size_t kLongestText = 160;
// The last calls are enough: those before them have ended.
constexpr std::uint64_t kCallsLookedAt = 64;
// A peer whose bytes are missing for so many heartbeats is silent. Idle peers send one after one and a half at the latest.
constexpr std::uint64_t kSilentBeats = 3;

std::uint64_t number_of(Rank rank) { return static_cast<std::uint64_t>(rank); }

std::string shortened(std::string_view text) {
  return text.size() <= kLongestText ? std::string(text) : std::string(text.substr(0, kLongestText)) + "...";
}

// A link to a rank of another site, as it is now.
struct LinkNow {
  Rank peer = 0;
  std::uint32_t site = 0;
  const char* state = "open";
  std::string why;
  std::uint64_t silent_ms = 0;  // of the peer's process, where that is too long
  bool unreachable = false;     // silent, and the kernel of its host acknowledges nothing
  std::optional<Connection::Sockets> sockets;
};

// The control connection may lie on a path that is broken while data goes over another one.
void look_for_silence(LinkNow& link, const Connection& connection, std::uint64_t heartbeat_ms) {
  if (connection.control() == nullptr || heartbeat_ms == 0) return;
  std::optional<TcpDelivery> heard;
  connection.control()->ask_kernel([&](int descriptor) { heard = tcp_delivery(descriptor); });
  if (!heard || heard->silent_ms <= kSilentBeats * heartbeat_ms) return;
  const auto* const moving = dynamic_cast<const MovingWay*>(&connection);
  const MovingWay::Signs data = moving == nullptr ? MovingWay::Signs{} : moving->signs_of_data();
  if (data.silent_ms <= kSilentBeats * heartbeat_ms) return;
  // Data that came since the control connection fell silent shows that another path works, as long as no bytes wait there in
  // vain.
  const bool moves =
      data.unheard_ms > 0 ? data.unheard_ms <= heartbeat_ms : data.silent_ms + std::uint64_t{2} * heartbeat_ms < heard->silent_ms;
  link.state = "silent";
  link.silent_ms = std::min(heard->silent_ms, data.silent_ms);
  link.unreachable = heard->unheard_ms > heartbeat_ms && !moves;
}

LinkNow look_at(const Communicator& communicator, Rank peer) {
  const Members& members = communicator.sources().members;
  const Connection& connection = *members.connection_to(peer);
  LinkNow link;
  link.peer = peer;
  link.site = members.connected().sites.of_rank[static_cast<std::size_t>(peer)];
  link.sockets = connection.ask_sockets();
  if (members.has_left(peer)) {
    link.state = "left";
    return link;
  }
  if (connection.dead()) {
    link.state = "lost";
    link.why = connection.why_dead();
    return link;
  }
  if (link.sockets && link.sockets->open == 0) link.state = link.sockets->all_broke ? "broken" : "not_open";
  look_for_silence(link, connection, communicator.config().heartbeat_ms);
  return link;
}

// A site is cut off if none of its processes can be reached, as far as this process has links to them.
void find_outages(std::vector<LinkNow>& links) {
  for (LinkNow& link : links) {
    if (!link.unreachable) continue;
    const bool all = std::all_of(links.begin(), links.end(), [&](const LinkNow& other) {
      return other.site != link.site || other.unreachable || std::string_view(other.state) == "lost" ||
             std::string_view(other.state) == "left";
    });
    if (all) link.state = "cut_off";
  }
}

std::vector<LinkNow> links_of(const Communicator& communicator, std::size_t most, std::uint64_t& left_out) {
  const std::vector<std::uint32_t>& sites = communicator.sources().members.connected().sites.of_rank;
  std::vector<LinkNow> links;
  for (Rank peer = 0; peer < communicator.ranks(); ++peer) {
    if (sites[static_cast<std::size_t>(peer)] == sites[static_cast<std::size_t>(communicator.rank())]) continue;
    if (links.size() < most)
      links.push_back(look_at(communicator, peer));
    else
      ++left_out;
  }
  find_outages(links);
  return links;
}

void put_link(JsonWriter& json, const Communicator& communicator, const LinkNow& link) {
  const Members& members = communicator.sources().members;
  const Connection& connection = *members.connection_to(link.peer);
  const Connection::Traffic traffic = connection.traffic();
  json.open('{').key("peer").number(number_of(link.peer)).key("place").value(shortened(members.place_of(link.peer)));
  json.key("site").number(std::uint64_t{link.site}).key("way").value(shortened(present_way(connection)));
  json.key("state").value(link.state);
  if (!link.why.empty()) json.key("why").value(shortened(link.why));
  if (link.silent_ms > 0) json.key("silent_ms").number(link.silent_ms);
  json.key("cipher").value(connection.cipher());
  if (link.sockets) {
    json.key("bytes_sent").number(traffic.sent).key("bytes_received").number(traffic.received);
    json.key("bytes_per_second").number(connection.sending_rate().bytes_per_second);
    json.key("sockets").number(std::uint64_t{link.sockets->open});
    json.key("paths").number(std::uint64_t{link.sockets->paths}).key("path").number(std::uint64_t{link.sockets->path} + 1);
    json.key("used_paths").open('[');
    for (std::uint64_t path = 0; path < link.sockets->paths; ++path)
      if ((link.sockets->used_paths >> path & 1U) != 0) json.number(path + 1);
    json.close(']');
    json.key("round_trip_us").number(std::uint64_t{link.sockets->round_trip_us});
    const std::uint32_t shortest = link.sockets->shortest_round_trip_us;
    json.key("shortest_round_trip_us").number(std::uint64_t{shortest != 0 ? shortest : connection.round_trip_us()});
    json.key("tcp_bytes_sent").number(link.sockets->bytes_sent).key("tcp_bytes_resent").number(link.sockets->bytes_resent);
  }
  json.close('}');
}

// "0-3,8": the ranks of a site.
std::string ranks_of(const std::vector<std::uint32_t>& site_of_rank, std::uint32_t site, std::uint64_t& count) {
  std::string text;
  for (std::size_t rank = 0; rank < site_of_rank.size(); ++rank) {
    if (site_of_rank[rank] != site) continue;
    const std::size_t first = rank;
    while (rank + 1 < site_of_rank.size() && site_of_rank[rank + 1] == site) ++rank;
    count += rank - first + 1;
    if (text.size() > kLongestText) continue;
    if (!text.empty()) text.append(",");
    text.append(std::to_string(first));
    if (rank > first) text.append("-").append(std::to_string(rank));
  }
  return shortened(text);
}

void put_sites(JsonWriter& json, const ConnectedRanks& ranks) {
  json.key("site").number(std::uint64_t{ranks.sites.of_rank[static_cast<std::size_t>(ranks.rank)]});
  json.key("sites").open('[');
  for (std::uint32_t site = 0; site < std::min<std::size_t>(ranks.sites.links.sites(), kMostSites); ++site) {
    std::uint64_t count = 0;
    const std::string text = ranks_of(ranks.sites.of_rank, site, count);
    const std::string name = site < ranks.site_names.size() ? ranks.site_names[site] : std::to_string(site);
    json.open('{').key("name").value(shortened(name)).key("ranks").value(text).key("count").number(count).close('}');
  }
  json.close(']');
}

// The oldest call that has not ended, and the codec in use, from the flight recorder: it costs calls nothing.
void put_calls(JsonWriter& json, const Communicator& communicator) {
  const std::vector<RecordedOperation> calls = communicator.observability().recorder().read(kCallsLookedAt);
  const auto first = std::find_if(calls.begin(), calls.end(), [](const RecordedOperation& one) {
    return one.state == RecordedState::issued || one.state == RecordedState::begun;
  });
  if (first != calls.end()) {
    const std::uint64_t now = ticks();
    json.key("call").open('{').key("text").value(shortened(text_of(first->call)));
    if (first->operation != 0) json.key("operation").number(first->operation);
    json.key("state").value(name_of(first->state));
    json.key("for_us").number(now > first->issued ? ticks_to_ns(now - first->issued) / 1000 : std::uint64_t{0}).close('}');
  }
  const std::string& setting = communicator.config().codec;
  json.key("codec").open('{').key("setting").value(setting.empty() ? "auto" : setting);
  const auto coded = std::find_if(calls.rbegin(), calls.rend(), [](const RecordedOperation& one) { return one.call.codec != 0; });
  if (coded != calls.rend()) {
    const std::size_t elements = std::size_t{1} << 20;
    json.key("latest").value(codec_name(coded->call.codec));
    json.key("ratio").number(static_cast<double>(elements * size_of(coded->call.type)) /
                             static_cast<double>(encoded_size(codec_of(coded->call.codec), elements)));
  }
  json.close('}');
}

void put_communicator(JsonWriter& json, const Communicator& communicator, std::size_t& links_left) {
  const ConnectedRanks& ranks = communicator.sources().members.connected();
  std::array<char, 20> attempt{};
  std::snprintf(attempt.data(), attempt.size(), "%016" PRIx64, static_cast<std::uint64_t>(communicator.attempt()));
  json.open('{').key("communicator").value(attempt.data()).key("name").value(shortened(communicator.name()));
  json.key("rank").number(number_of(communicator.rank())).key("ranks").number(number_of(communicator.ranks()));
  json.key("state").value(communicator.failed() ? "failed" : "usable");
  if (communicator.failed()) json.key("failure").value(shortened(communicator.first_failure().text()));
  json.key("operations").open('{').key("issued").number(communicator.sources().order.issued());
  json.key("begun")
      .number(communicator.sources().order.begun())
      .key("done")
      .number(communicator.sources().order.done())
      .close('}');
  put_calls(json, communicator);
  put_sites(json, ranks);
  std::uint64_t left_out = 0;
  const std::vector<LinkNow> links = links_of(communicator, links_left, left_out);
  links_left -= links.size();
  json.key("links").open('[');
  for (const LinkNow& link : links) put_link(json, communicator, link);
  json.close(']').key("links_left_out").number(left_out).close('}');
}

std::string with_at_most(std::span<const Communicator* const> communicators, std::size_t most, std::size_t links) {
  JsonWriter json;
  json.open('{').key("seto_status").number(kStatusSchema).key("pid").number(static_cast<std::uint64_t>(getpid()));
  json.key("host").value(shortened(host_name())).key("program").value(shortened(program_invocation_short_name));
  json.key("time_us").number(wall_us()).key("communicators").open('[');
  const std::size_t shown = std::min(communicators.size(), most);
  for (const Communicator* const communicator : communicators.first(shown)) put_communicator(json, *communicator, links);
  json.close(']').key("communicators_left_out").number(std::uint64_t{communicators.size() - shown}).close('}');
  return std::move(json).text();
}

}  // namespace

std::string status_of(std::span<const Communicator* const> communicators, std::size_t most_bytes) {
  std::size_t most = kMostCommunicators;
  std::size_t links = kMostLinks;
  std::string text = with_at_most(communicators, most, links);
  while (text.size() > most_bytes && most > 0) {
    links /= 2;
    if (links == 0) most /= 2;
    text = with_at_most(communicators, most, links);
  }
  return text;
}

}  // namespace seto
