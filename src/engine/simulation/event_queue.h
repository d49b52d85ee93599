#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "src/base/types.h"

namespace seto {

struct VirtualEvent {
  // finished: a step. arrived: a message. slot_free: a receiver has read a message. The others belong to the network.
  enum class Kind : std::uint8_t { finished, arrived, slot_free, at_far_port, begins, crossed, acknowledged };
  double at_ns = 0;
  Kind kind = Kind::finished;
  Rank rank = 0;               // the rank that may continue after it
  std::uint32_t channel = 0;   // of a message
  std::uint32_t receiver = 0;  // its index among the channel's receivers
  std::uint32_t way = 0;       // in the network
  double amount = 0;           // at_far_port: nanoseconds of the message on that port; crossed, acknowledged: bytes
  bool last = true;            // crossed: the message ends with this part
  std::uint64_t number = 0;    // of two events at the same time, the lower one comes first
};

class EventQueue final {
 public:
  void push(VirtualEvent event) {
    event.number = pushed_++;
    events_.push(event);
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] double next_ns() const { return events_.top().at_ns; }
  VirtualEvent pop() {
    const VirtualEvent event = events_.top();
    events_.pop();
    return event;
  }

 private:
  struct Later {
    bool operator()(const VirtualEvent& a, const VirtualEvent& b) const {
      return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.number > b.number;
    }
  };
  std::priority_queue<VirtualEvent, std::vector<VirtualEvent>, Later> events_;
  std::uint64_t pushed_ = 0;
};

}  // namespace seto
