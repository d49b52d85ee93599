#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/net/token.h"

namespace seto {

// What a rank and the rendezvous say to each other, on one machine: so in the machine's own byte order.
//   rank -> server:  hello, then one contribution for each round
//   server -> rank:  ready once all have come, then one result for each round; or failure, which is the last word
enum class FrameKind : std::uint32_t { hello = 1, ready, contribution, result, failure };

struct Frame {
  FrameKind kind{};
  std::string body;
};

struct Hello {
  Token token{};
  Rank rank = 0;
  int size = 0;
  std::uint64_t remaining_ms = 0;  // until this rank's deadline
};

[[nodiscard]] std::string encode_frame(FrameKind kind, std::string_view body);

[[nodiscard]] std::string encode_hello(const Hello& hello);
[[nodiscard]] std::string encode_contribution(std::uint64_t remaining_ms, std::string_view message);
[[nodiscard]] std::string encode_result(const std::vector<std::string>& messages);
[[nodiscard]] std::string encode_failure(const Status& status);

// These take the body of a frame of their kind; nothing if it is malformed.
[[nodiscard]] std::optional<Hello> decode_hello(std::string_view body);
struct Contribution {
  std::uint64_t remaining_ms;
  std::string_view message;
};
[[nodiscard]] std::optional<Contribution> decode_contribution(std::string_view body);
[[nodiscard]] std::optional<std::vector<std::string>> decode_result(std::string_view body, int size);
[[nodiscard]] Status decode_failure(std::string_view body);

inline constexpr std::size_t kHelloBodySize = sizeof(Hello);
inline constexpr std::size_t kContributionOverhead = sizeof(std::uint64_t);

// Cuts a stream into frames. A frame with a wrong magic, or longer than the limit, is garbage: found before it is stored.
class FrameReader final {
 public:
  explicit FrameReader(std::size_t body_limit) : body_limit_(body_limit) {}

  void set_body_limit(std::size_t limit) { body_limit_ = limit; }
  enum class Outcome : std::uint8_t { frame, more, garbage };
  void append(std::string_view bytes) { buffer_.append(bytes); }
  [[nodiscard]] Outcome next(Frame& frame);

 private:
  std::size_t body_limit_;
  std::string buffer_;
};

}  // namespace seto
