#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace seto {

// What travels on a wire, after the handshake. Little-endian: kind, size of the bytes that follow the head, from, key, to.
enum class WireFrameKind : std::uint16_t {
  ping = 1,  // answered at once
  pong,
  ask,      // has the mailbox (key, to) answer (key, from)
  news,     // bytes for the mailbox (key, to)
  gone,     // of an ask: there is no such mailbox
  join,     // the contexts of the bytes mean to share this wire, in the attempt `key`
  joined,   // so they do
  refused,  // they will not: the reason follows them
  bye,      // this end closes and lives on
  lost,     // this end has given the other up: why
};

inline constexpr std::size_t kFrameLimit = 4096;
inline constexpr std::size_t kFrameHeadSize = 24;

struct WireFrame {
  WireFrameKind kind{};
  std::uint32_t from = 0;
  std::uint64_t key = 0;
  std::uint32_t to = 0;
  std::string_view bytes{};
};

[[nodiscard]] std::string encode(const WireFrame& frame);

// Cuts what comes into frames; holds at most one.
class WireFrameReader final {
 public:
  // Calls back for each whole frame, whose bytes are valid during the call. Fails for what is no frame, and is of no use then.
  [[nodiscard]] Status feed(std::string_view bytes, const std::function<void(const WireFrame&)>& take);

 private:
  [[nodiscard]] std::size_t wanted() const;

  std::string part_;
};

}  // namespace seto
