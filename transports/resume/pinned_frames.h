#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/resume/payload_retention.h"

namespace seto::resume {

// The payloads that one path reads where they lie, and how far the path must have come in its bytes until it does no more.
// Not thread safe.
class PinnedFrames final {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The path has accepted some of that payload, and reads it until it has released its bytes up to `end`, which never falls.
  void pin(PayloadRetention& kept, std::uint64_t number, std::uint64_t end, std::uint64_t now_ns);
  // The path has released its bytes up to that one. True: a frame was unpinned.
  bool released(PayloadRetention& kept, std::uint64_t end);
  // The path reads nothing any more, and the next one begins anew.
  void clear(PayloadRetention& kept) { (void)released(kept, ~std::uint64_t{0}); }
  // When the oldest one was pinned. Not when empty.
  [[nodiscard]] std::uint64_t since_ns() const { return frames_[first_].since_ns; }

 private:
  struct Pinned {
    std::uint64_t number = 0;
    std::uint64_t end = 0;
    std::uint64_t since_ns = 0;
  };

  std::vector<Pinned> frames_;  // a ring
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace seto::resume
