#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/bootstrap/rendezvous_address.h"

namespace seto {

// The frames between a rank and the rendezvous after the handshake (src/net/auth_handshake.h), and from a rank to its children in
// the tree that distributes results (result_tree.h). Numbers are little-endian, as in memory.
//   rank -> server:  hello, then one contribution for each round; ask if the result of a round does not come through the tree
//   server -> rank:  ready once all ranks have joined; then for each round: result, or tree_result to the ranks at the top of the
//                    tree and complete to the others; or failure, after which nothing follows. orphan: this child of the
//                    rank gets its results from the server
//   rank -> child:   tree_result
enum class FrameKind : std::uint32_t { hello = 1, ready, contribution, result, failure, tree_result, complete, ask, orphan };

struct Frame {
  FrameKind kind{};
  std::string body;
};

struct Hello {
  std::uint64_t number = 0;  // counts the inits of this rank by this id
  Rank rank = 0;
  int size = 0;
  std::uint64_t remaining_ms = 0;  // until this rank's deadline
  RendezvousAddress address;       // address for its children; empty: it has no children, or no socket for them
};

[[nodiscard]] std::string encode_frame(FrameKind kind, std::string_view body);

[[nodiscard]] std::string encode_hello(const Hello& hello);
[[nodiscard]] std::string encode_ready(const RendezvousAddress& parent);
[[nodiscard]] std::string encode_contribution(std::uint64_t remaining_ms, std::string_view message);
[[nodiscard]] std::string encode_result(FrameKind kind, const std::vector<std::string>& messages);
[[nodiscard]] std::string encode_failure(const Status& status);
[[nodiscard]] std::string encode_orphan(Rank child);

// These decode the body of a frame of their kind. They return nothing for a malformed body.
[[nodiscard]] std::optional<Hello> decode_hello(std::string_view body);
// The parent's address, which is empty if the rank has no parent.
[[nodiscard]] std::optional<RendezvousAddress> decode_ready(std::string_view body);
struct Contribution {
  std::uint64_t remaining_ms;
  std::string_view message;
};
[[nodiscard]] std::optional<Contribution> decode_contribution(std::string_view body);
[[nodiscard]] std::optional<std::vector<std::string>> decode_result(std::string_view body, int size);
[[nodiscard]] Status decode_failure(std::string_view body);
[[nodiscard]] std::optional<Rank> decode_orphan(std::string_view body);

inline constexpr std::size_t kFrameHeaderSize = 16;
inline constexpr std::size_t kHelloBodySize = 24 + kRendezvousAddressSize;
inline constexpr std::size_t kContributionOverhead = sizeof(std::uint64_t);
// The longest body of a result for this number of ranks.
[[nodiscard]] std::size_t result_limit(int size);

// Cuts a byte stream into frames. A frame with a wrong magic number or over the limit is garbage, and is detected before it is
// stored.
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
