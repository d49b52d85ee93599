#pragma once

#include <cstdint>

namespace seto::resume {

// Whether the peer's kernel acknowledges anything of what a socket sent, as seen by looks at it while a link makes no progress.
class PathMovement final {
 public:
  // The link has made no progress for a while: what came before does not count.
  void begin(std::uint64_t acknowledged, std::uint64_t now_ns) {
    acknowledged_ = acknowledged;
    moved_ns_ = now_ns;
    vain_ns_ = 0;
  }

  // `in_vain`: bytes were sent again after a timeout, and nothing has been acknowledged since.
  void look(std::uint64_t acknowledged, bool in_vain, std::uint64_t now_ns) {
    if (acknowledged != acknowledged_) return begin(acknowledged, now_ns);
    if (!in_vain)
      vain_ns_ = 0;
    else if (vain_ns_ == 0)
      vain_ns_ = now_ns;
  }

  [[nodiscard]] bool stands_still(std::uint64_t for_ns, std::uint64_t now_ns) const { return now_ns - moved_ns_ >= for_ns; }
  // The answer to bytes that were sent again takes a round trip: before that, they were not sent in vain.
  [[nodiscard]] bool sends_in_vain(std::uint64_t round_trip_ns, std::uint64_t now_ns) const {
    return vain_ns_ != 0 && now_ns - vain_ns_ >= round_trip_ns;
  }

 private:
  std::uint64_t acknowledged_ = 0;  // bytes
  std::uint64_t moved_ns_ = 0;      // when that was seen to grow, or looks began
  std::uint64_t vain_ns_ = 0;       // when it was first seen to send in vain since; 0: it does not
};

}  // namespace seto::resume
