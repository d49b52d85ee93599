#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/result.h"
#include "transports/resume/received_frames.h"

namespace seto::resume {

inline constexpr std::uint32_t kMostPaths = 16;
// One bit for each path.
using PathSet = std::uint32_t;

// The frames of a peer as its paths bring them, where a frame may come again over another path. A frame counts when it has come
// whole over one of them.
class Arrivals final {
 public:
  explicit Arrivals(std::size_t beyond) : received_(beyond) {}

  enum class Action : std::uint8_t {
    place,  // the first copy: its owner chooses the memory
    join,   // another path is bringing it: the same memory
    drop,   // it has come whole: its bytes go nowhere
  };
  struct Begun {
    Action action = Action::place;
    std::uint32_t with = 0;  // join: that path
  };
  // The header of a frame has come over a path that brings no other frame now. A failure means malformed input.
  Result<Begun> begin(std::uint32_t path, std::uint64_t number);

  struct Completed {
    bool counts = false;    // false: it had come whole before, and nothing happens
    PathSet turn_away = 0;  // paths in the middle of another copy: they must stop writing before the frame is passed on
  };
  // All its bytes have come.
  Completed complete(std::uint32_t path);

  struct Half {
    std::uint64_t number = 0;  // 0: the path brought no frame
    bool abandoned = false;    // no other path brings it: its memory must be as if its header had never come
  };
  // Nothing more comes over the path. Its number may be used for a new path.
  Half path_broke(std::uint32_t path);

  [[nodiscard]] const ReceivedFrames& received() const { return received_; }
  [[nodiscard]] Heard heard() const { return received_.heard(); }

 private:
  struct Reading {
    std::uint64_t number = 0;  // 0: between two frames
    bool turned_away = false;
  };

  ReceivedFrames received_;
  std::array<Reading, kMostPaths> reading_{};
};

}  // namespace seto::resume
