#include "src/engine/simulation/virtual_network.h"

#include <algorithm>

namespace seto {
namespace {

// A message that is longer than this share of its window moves in parts of that length, so that acknowledgements come in between.
constexpr double kPartsAWindow = 4;

constexpr double kUnlimited = 1e9;  // bytes a nanosecond: a link without a time for each byte

}  // namespace

VirtualNetwork::VirtualNetwork(const SimulatedMachine& machine, EventQueue& queue)
    : machine_(machine), queue_(queue), shared_(machine.shared_bytes_per_ns) {}

std::uint32_t VirtualNetwork::port_of(std::uint32_t wire) {
  const auto [entry, added] = port_by_wire_.try_emplace(wire, static_cast<std::uint32_t>(ports_.size()));
  if (added) ports_.push_back({0, 0, wire});
  return entry->second;
}

std::uint32_t VirtualNetwork::way(Rank from, Rank to) {
  const std::uint64_t pair = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 | static_cast<std::uint32_t>(to);
  const auto [entry, added] = way_by_pair_.try_emplace(pair, static_cast<std::uint32_t>(ways_.size()));
  if (!added) return entry->second;
  Way& made = ways_.emplace_back();
  made.link = machine_.link(from, to);
  made.port = port_of(made.link.wire);
  if (made.link.far_wire != kNoWire) made.far_port = port_of(made.link.far_wire);
  if (made.link.shared_way == kNoWire && made.link.window_bytes == 0) return entry->second;
  double limit = made.link.ns_per_byte > 0 ? 1 / made.link.ns_per_byte : kUnlimited;
  if (made.link.most_bytes_per_ns > 0) limit = std::min(limit, made.link.most_bytes_per_ns);
  std::vector<std::uint32_t> links;
  if (made.link.shared_way != kNoWire) links = machine_.shared_ways[made.link.shared_way];
  made.flow = static_cast<std::uint32_t>(flows_.size());
  flows_.emplace_back().flow_class = shared_.class_of(links, limit);
  return entry->second;
}

double VirtualNetwork::leave(Way& way, double bytes, double now_ns) {
  Port& port = ports_[way.port];
  const double begin_ns = std::max(port.free_at_ns, now_ns);
  port.free_at_ns = begin_ns + bytes * way.link.ns_per_byte;
  port.bytes += bytes;
  if (way.far_port != kNone) ports_[way.far_port].bytes += bytes;
  return begin_ns;
}

void VirtualNetwork::send(std::uint32_t index, double bytes, const VirtualEvent& arrival, double now_ns) {
  Way& way = ways_[index];
  VirtualEvent event = arrival;
  event.kind = VirtualEvent::Kind::arrived;
  event.way = index;
  if (way.flow != kNone) {
    std::deque<Part>& parts = flows_[way.flow].parts;
    const double longest = way.link.window_bytes > 0 ? std::max(1.0, way.link.window_bytes / kPartsAWindow) : bytes;
    for (; bytes > longest; bytes -= longest) parts.push_back({longest, false, event});
    parts.push_back({bytes, true, event});
    return pump(index, now_ns);
  }
  const double begin_ns = leave(way, bytes, now_ns);
  const double wire_ns = bytes * way.link.ns_per_byte;
  event.at_ns = begin_ns + wire_ns + way.link.latency_ns;
  if (way.far_port != kNone) {
    event.kind = VirtualEvent::Kind::at_far_port;
    event.at_ns = begin_ns + way.link.latency_ns;
    event.amount = wire_ns;
  }
  queue_.push(event);
}

// Begins with the next part of a way if none is moving and the window has room. A part that is longer than the window waits until
// it is alone.
void VirtualNetwork::pump(std::uint32_t index, double now_ns) {
  Way& way = ways_[index];
  Flow& flow = flows_[way.flow];
  if (flow.moving || flow.parts.empty()) return;
  const double bytes = flow.parts.front().bytes;
  const double window = way.link.window_bytes;
  if (window > 0 && flow.unacknowledged > 0 && flow.unacknowledged + bytes > window) return;
  flow.moving = true;
  flow.unacknowledged += bytes;
  VirtualEvent event;
  event.kind = VirtualEvent::Kind::begins;
  event.way = index;
  event.at_ns = leave(way, bytes, now_ns);
  queue_.push(event);
}

void VirtualNetwork::end_flows() {
  const double now_ns = shared_.next_end_ns();
  for (const std::uint32_t index : shared_.end_flows()) {
    const Way& way = ways_[index];
    Flow& flow = flows_[way.flow];
    const Part part = flow.parts.front();
    flow.parts.pop_front();
    flow.moving = false;
    VirtualEvent event = part.arrival;
    event.kind = VirtualEvent::Kind::crossed;
    event.at_ns = now_ns + way.link.latency_ns;
    event.amount = part.bytes;
    event.last = part.last;
    queue_.push(event);
    pump(index, now_ns);
  }
}

void VirtualNetwork::take(const VirtualEvent& event) {
  Way& way = ways_[event.way];
  VirtualEvent next = event;
  switch (event.kind) {
    case VirtualEvent::Kind::at_far_port: {
      Port& port = ports_[way.far_port];
      port.free_at_ns = std::max(port.free_at_ns, event.at_ns) + event.amount;
      next.kind = VirtualEvent::Kind::arrived;
      next.at_ns = port.free_at_ns;
      return queue_.push(next);
    }
    case VirtualEvent::Kind::begins:
      return shared_.begin(flows_[way.flow].flow_class, flows_[way.flow].parts.front().bytes, event.way, event.at_ns);
    case VirtualEvent::Kind::crossed: {
      // The last byte is here. The port took the part while it came, unless it was busy.
      if (way.far_port != kNone) {
        Port& port = ports_[way.far_port];
        port.free_at_ns = std::max(port.free_at_ns + event.amount * way.link.ns_per_byte, event.at_ns);
        next.at_ns = port.free_at_ns;
      }
      next.kind = VirtualEvent::Kind::arrived;
      if (event.last) queue_.push(next);
      next.kind = VirtualEvent::Kind::acknowledged;
      next.at_ns += way.link.latency_ns;
      return queue_.push(next);
    }
    case VirtualEvent::Kind::acknowledged:
      flows_[way.flow].unacknowledged -= event.amount;
      return pump(event.way, event.at_ns);
    default:
      return;
  }
}

std::map<std::uint32_t, double> VirtualNetwork::bytes_by_wire() const {
  std::map<std::uint32_t, double> bytes;
  for (const Port& port : ports_) bytes[port.wire] = port.bytes;
  return bytes;
}

std::vector<double> VirtualNetwork::bytes_by_shared_link() const {
  std::vector<double> bytes;
  for (std::uint32_t link = 0; link < machine_.shared_bytes_per_ns.size(); ++link) bytes.push_back(shared_.bytes_over(link));
  return bytes;
}

}  // namespace seto
