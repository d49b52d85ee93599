#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/engine/simulation/event_queue.h"
#include "src/engine/simulation/shared_links.h"
#include "src/engine/simulation/simulated_engine.h"

namespace seto {

// The messages that are under way in a simulation. It puts the event `arrived` into the queue when the last byte of a message has
// come.
class VirtualNetwork final {
 public:
  VirtualNetwork(const SimulatedMachine& machine, EventQueue& queue);

  // The way of the messages from one rank to another.
  std::uint32_t way(Rank from, Rank to);
  [[nodiscard]] const SimulatedLink& link(std::uint32_t way) const { return ways_[way].link; }

  // `arrival` names channel, receiver and rank.
  void send(std::uint32_t way, double bytes, const VirtualEvent& arrival, double now_ns);
  // An event of the network's kinds.
  void take(const VirtualEvent& event);

  // The time at which a flow leaves the shared links next, and what follows from it.
  [[nodiscard]] double next_end_ns() const { return shared_.next_end_ns(); }
  void end_flows();

  [[nodiscard]] std::map<std::uint32_t, double> bytes_by_wire() const;
  [[nodiscard]] std::vector<double> bytes_by_shared_link() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A message, or a part of it that fits into the window. The last part makes the message arrive.
  struct Part {
    double bytes;
    bool last;
    VirtualEvent arrival;
  };
  struct Port {
    double free_at_ns = 0;
    double bytes = 0;
    std::uint32_t wire = 0;
  };
  // The messages of a pair of ranks over shared links, or with a window.
  struct Flow {
    std::uint32_t flow_class = 0;
    bool moving = false;  // the first part is on its way into the shared links
    double unacknowledged = 0;
    std::deque<Part> parts;
  };
  struct Way {
    SimulatedLink link;
    std::uint32_t port = kNone;
    std::uint32_t far_port = kNone;
    std::uint32_t flow = kNone;  // kNone: no shared link and no window
  };

  std::uint32_t port_of(std::uint32_t wire);
  // Takes the port for a message of that many bytes, and returns when its first byte leaves.
  double leave(Way& way, double bytes, double now_ns);
  void pump(std::uint32_t index, double now_ns);

  const SimulatedMachine& machine_;
  EventQueue& queue_;
  SharedLinks shared_;
  std::vector<Port> ports_;
  std::unordered_map<std::uint32_t, std::uint32_t> port_by_wire_;
  std::vector<Way> ways_;
  std::vector<Flow> flows_;
  std::unordered_map<std::uint64_t, std::uint32_t> way_by_pair_;
};

}  // namespace seto
