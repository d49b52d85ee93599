#include "tests/lab/network.h"

#include <algorithm>
#include <utility>

#include "tests/lab/settings.h"

namespace seto::lab {
namespace {

// Limit of deliveries to one site in one pass, so that the other sites do not wait longer.
constexpr std::size_t kDeliveriesPerPass = 32;
// The segments of a packet reach a downlink one after another, but the model gets them when the last one is there. The bucket of
// an
// idle downlink compensates for that: packets that arrive at its rate are not delayed a second time.
constexpr std::uint64_t kDownlinkBucket = 64U << 10;

// Offers a piece of a packet to the next link of its path. The survivors count segments from the beginning of the packet.
void pass_on(LinkModel& model, const Segments& packet, const Piece& piece, std::vector<Piece>& survivors) {
  const std::size_t before = survivors.size();
  const std::uint32_t last = piece.first + piece.count - 1;
  model.offer(piece.due, {.count = piece.count, .size = packet.size, .last_size = packet.size_of(last)}, survivors);
  for (std::size_t index = before; index < survivors.size(); ++index) survivors[index].first += piece.first;
}

}  // namespace

double Lateness::average_us() const { return count == 0 ? 0 : static_cast<double>(sum) / 1e3 / static_cast<double>(count); }

void Lateness::add(Nanoseconds late) {
  ++count;
  sum += late;
  most = std::max(most, late);
}

Network::Network(std::size_t sites, const LinkSettings& links, std::uint64_t seed) {
  links_.reserve(sites * sites);
  for (std::size_t index = 0; index < sites * sites; ++index) {
    links_.push_back({.model = LinkModel(links, seed * 1'000'003 + index), .on_its_way = {}, .lateness = {}, .by_dscp = {}});
  }
  access_.reserve(sites);
  for (std::size_t site = 0; site < sites; ++site) {
    access_.push_back(
        {.uplink = LinkModel({}, seed), .downlink = LinkModel({.bucket_bytes = kDownlinkBucket}, seed), .arrived = {}});
  }
  size_queues(0);
}

void Network::enter(Nanoseconds now, std::size_t from, const OffloadHeader& offload, Packet packet) {
  const auto to = destination_site(packet);
  const auto shape = shape_of(offload, packet);
  if (!to || *to >= sites() || *to == from || !shape) return;
  Link& target = link(from, *to);
  if (target.model.settings().closed && begins_connection(packet)) return;
  MarkedTraffic& marked = target.by_dscp[code_point(packet)];
  marked.segments += shape->segments.count;
  marked.bytes += shape->segments.bytes();
  pieces_.clear();
  passed_.clear();
  access_[from].uplink.offer(now, shape->segments, pieces_);
  // Only this uplink feeds the link of the pair, so the link may be offered a piece before the time at which the piece has left.
  for (const Piece& piece : pieces_) pass_on(target.model, shape->segments, piece, passed_);
  if (passed_.empty()) return;
  const auto carried = std::make_shared<const CarriedPacket>(
      CarriedPacket{.offload = offload, .shape = *shape, .bytes = {packet.begin(), packet.end()}});
  for (const Piece& piece : passed_) {
    target.on_its_way.push_back({.due = piece.due, .from = from, .piece = piece, .packet = carried});
  }
}

Link* Network::earliest_link_to(std::size_t site) {
  Link* earliest = nullptr;
  for (std::size_t from = 0; from < sites(); ++from) {
    Link& source = link(from, site);
    if (source.on_its_way.empty()) continue;
    if (earliest == nullptr || source.on_its_way.front().due < earliest->on_its_way.front().due) earliest = &source;
  }
  return earliest;
}

// Delivers in the order of arrival at the downlink, with the times of arrival, however late this call is.
void Network::pass_downlink(Nanoseconds now, std::size_t site) {
  Access& access = access_[site];
  for (std::size_t turn = 0; turn < kDeliveriesPerPass; ++turn) {
    Link* const source = earliest_link_to(site);
    if (source == nullptr || source->on_its_way.front().due > now) return;
    Delivery delivery = std::move(source->on_its_way.front());
    source->on_its_way.pop_front();
    passed_.clear();
    pass_on(access.downlink, delivery.packet->shape.segments, delivery.piece, passed_);
    for (const Piece& piece : passed_) {
      access.arrived.push_back({.due = piece.due, .from = delivery.from, .piece = piece, .packet = delivery.packet});
    }
  }
}

std::size_t Network::hand_out(Nanoseconds now, std::size_t site, Sink& sink) {
  std::deque<Delivery>& arrived = access_[site].arrived;
  std::size_t handed_out = 0;
  for (; handed_out < kDeliveriesPerPass && !arrived.empty() && arrived.front().due <= now; ++handed_out) {
    const Delivery& first = arrived.front();
    const CarriedPacket& packet = *first.packet;
    link(first.from, site).lateness.add(now - first.due);
    sink.deliver(site, fragment_of(packet.offload, packet.bytes, packet.shape, first.piece), packet.bytes);
    arrived.pop_front();
  }
  return handed_out;
}

std::size_t Network::deliver(Nanoseconds now, Sink& sink) {
  std::size_t delivered = 0;
  for (std::size_t site = 0; site < sites(); ++site) {
    pass_downlink(now, site);
    delivered += hand_out(now, site, sink);
  }
  return delivered;
}

Nanoseconds Network::next_due() const {
  Nanoseconds next = kFarAway;
  for (const Link& source : links_) {
    if (!source.on_its_way.empty()) next = std::min(next, source.on_its_way.front().due);
  }
  for (const Access& access : access_) {
    if (!access.arrived.empty()) next = std::min(next, access.arrived.front().due);
  }
  return next;
}

Status Network::change(Nanoseconds now, std::string_view line) {
  const auto words = words_of(line, ' ');
  const bool of_access = !words.empty() && (words[0] == "uplink" || words[0] == "downlink");
  if (words.size() < (of_access ? 3U : 2U)) {
    return {Code::invalid_argument,
            quoted(line) + ": wanted PAIRS OPTION..., uplink SITES OPTION... or downlink SITES OPTION..."};
  }
  SETO_TRY(of_access ? change_access(now, words) : change_links(now, words));
  size_queues(now);
  return {};
}

Status Network::change_links(Nanoseconds now, const std::vector<std::string_view>& words) {
  SETO_ASSIGN(const auto pairs, parse_pairs(words[0], sites()));
  std::vector<LinkSettings> changed;
  for (const SitePair& pair : pairs) {
    LinkSettings& settings = changed.emplace_back(link(pair.from, pair.to).model.settings());
    for (std::size_t index = 1; index < words.size(); ++index) SETO_TRY(set_option(settings, words[index]));
  }
  for (std::size_t index = 0; index < pairs.size(); ++index) {
    Link& target = link(pairs[index].from, pairs[index].to);
    // Packets that wait at the uplink have passed this link's model already.
    target.model.change(std::max(now, access_[pairs[index].from].uplink.busy_until()), changed[index]);
    if (changed[index].cut) target.on_its_way.clear();
  }
  return {};
}

Status Network::change_access(Nanoseconds now, const std::vector<std::string_view>& words) {
  SETO_ASSIGN(const auto chosen, parse_sites(words[1], sites()));
  const auto model_of = [&](std::size_t site) -> LinkModel& {
    return words[0] == "uplink" ? access_[site].uplink : access_[site].downlink;
  };
  std::vector<LinkSettings> changed;
  for (const std::size_t site : chosen) {
    LinkSettings& settings = changed.emplace_back(model_of(site).settings());
    for (std::size_t index = 2; index < words.size(); ++index) SETO_TRY(set_access_option(settings, words[index]));
  }
  for (std::size_t index = 0; index < chosen.size(); ++index) model_of(chosen[index]).change(now, changed[index]);
  return {};
}

// Delay belongs to pairs; a queue without a stated size holds the longest round trip of its site.
void Network::size_queues(Nanoseconds now) {
  for (std::size_t site = 0; site < sites(); ++site) {
    Nanoseconds longest = 0;
    for (std::size_t other = 0; other < sites(); ++other) {
      if (other == site) continue;
      longest = std::max(longest, link(site, other).model.settings().delay + link(other, site).model.settings().delay);
    }
    for (LinkModel* const model : {&access_[site].uplink, &access_[site].downlink}) {
      LinkSettings settings = model->settings();
      if (settings.queue_time == longest) continue;
      settings.queue_time = longest;
      model->change(now, settings);
    }
  }
}

}  // namespace seto::lab
