#pragma once

#include <cstdint>

namespace seto::resume {

// Whether the peer's kernel acknowledges anything of what a socket sent, as seen by looks at it while a link makes no progress.
class PathMovement final {
 public:
  // The state of the socket, as the kernel of this host reports it.
  struct Seen {
    std::uint64_t acknowledged = 0;  // bytes
    bool in_flight = false;          // bytes are sent and not acknowledged
    bool in_vain = false;            // some were sent again after a timeout, and nothing has been acknowledged since
  };

  // The link has made no progress for a while: what came before does not count.
  void begin(const Seen& seen, std::uint64_t now_ns) {
    acknowledged_ = seen.acknowledged;
    moved_ns_ = now_ns;
    unanswered_ns_ = seen.in_flight ? now_ns : 0;
    vain_ns_ = 0;
    answered_ = false;
  }

  void look(const Seen& seen, std::uint64_t now_ns) {
    if (seen.acknowledged != acknowledged_) {
      begin(seen, now_ns);
      answered_ = true;
      return;
    }
    note(unanswered_ns_, seen.in_flight, now_ns);
    note(vain_ns_, seen.in_vain, now_ns);
  }

  [[nodiscard]] bool stands_still(std::uint64_t for_ns, std::uint64_t now_ns) const { return now_ns - moved_ns_ >= for_ns; }
  // The peer's kernel has acknowledged something since begin().
  [[nodiscard]] bool was_answered() const { return answered_; }
  // For so long, every look found bytes in flight, and none of them was acknowledged.
  [[nodiscard]] bool is_unanswered(std::uint64_t for_ns, std::uint64_t now_ns) const {
    return unanswered_ns_ != 0 && now_ns - unanswered_ns_ >= for_ns;
  }
  // The answer to bytes that were sent again takes a round trip: before that, they were not sent in vain.
  [[nodiscard]] bool sends_in_vain(std::uint64_t round_trip_ns, std::uint64_t now_ns) const {
    return vain_ns_ != 0 && now_ns - vain_ns_ >= round_trip_ns;
  }

 private:
  static void note(std::uint64_t& since_ns, bool holds, std::uint64_t now_ns) {
    if (!holds)
      since_ns = 0;
    else if (since_ns == 0)
      since_ns = now_ns;
  }

  std::uint64_t acknowledged_ = 0;   // bytes
  std::uint64_t moved_ns_ = 0;       // when that was seen to grow, or looks began
  std::uint64_t unanswered_ns_ = 0;  // since when bytes are in flight, as far as looks tell; 0: none are
  std::uint64_t vain_ns_ = 0;        // when it was first seen to send in vain since; 0: it does not
  bool answered_ = false;
};

}  // namespace seto::resume
