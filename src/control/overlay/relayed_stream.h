#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "src/control/overlay/overlay_routes.h"

namespace seto {

// One member's end of the messages between it and another one: numbers those that it sends and keeps them until they are
// acknowledged, and takes those of the other in order. Not thread safe.
class RelayedStream final {
 public:
  struct Kept {
    std::uint64_t number = 0;
    std::string bytes;
  };

  // ---- what is sent ----

  const Kept& keep(std::string bytes);
  [[nodiscard]] const std::deque<Kept>& kept() const { return kept_; }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }
  // Returns false if so many were never sent.
  [[nodiscard]] bool acknowledged(std::uint64_t heard);
  // The other end takes no more messages.
  void close();
  [[nodiscard]] bool closed() const { return closed_; }
  // None: no path is known, or none was looked for yet.
  std::optional<OverlayPath> path;

  // ---- what is received ----

  // Whether this message is the next one. What came before, and what overtakes others, is not taken.
  [[nodiscard]] bool take(std::uint64_t number, std::size_t bytes);
  // The number of the last message that was taken, to be told to the other end.
  [[nodiscard]] std::uint64_t tell_heard();
  [[nodiscard]] std::uint64_t heard() const { return heard_; }
  [[nodiscard]] bool owes_acknowledgement() const { return untold_ >= kMostUntold || untold_bytes_ >= kMostUntoldBytes; }

 private:
  static constexpr std::uint32_t kMostUntold = 16;
  static constexpr std::size_t kMostUntoldBytes = 16 * 1024;

  std::deque<Kept> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool closed_ = false;
  std::uint64_t heard_ = 0;
  std::uint32_t untold_ = 0;  // received since heard_ was told, repeated ones included
  std::size_t untold_bytes_ = 0;
};

}  // namespace seto
