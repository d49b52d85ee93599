#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/command/run/rank_events.h"

namespace seto::command {

// A message between `seto run` and its agent on another host, over the remote shell's standard input and output.
struct Message {
  enum class Kind : std::uint32_t {
    // To the agent:
    start,   // body: encode(Assignment)
    signal,  // number: the signal
    input,   // body: for rank 0
    input_end,
    // From the agent:
    output,  // rank, body
    error,   // rank, body
    ended,   // rank; body: wait status as text
    taken,   // body: number of further input bytes that rank 0 has taken, as text
    failed,  // body: why the ranks cannot be started
  };
  Kind kind = Kind::start;
  std::int32_t number = 0;  // a rank or a signal
  std::string body;
};
inline constexpr std::size_t kMessageLimit = std::size_t{1} << 22;
// Limit on rank 0's input in flight: 4 MiB fill a link of 100 MB/s and 40 ms.
inline constexpr std::size_t kInputWindow = std::size_t{4} << 20;

std::string encode(Message::Kind kind, int number, std::string_view body);

// Splits a byte stream into messages.
class MessageReader final {
 public:
  void append(std::string_view bytes) { unread_.append(bytes); }
  // The next message; none yet; or a failure if the bytes are no messages.
  Result<std::optional<Message>> next();

 private:
  std::string unread_;
  std::size_t offset_ = 0;
};

// The ranks that an agent has to run.
struct Assignment {
  RankProgram program;
  std::vector<int> ranks;
  std::uint64_t grace_ms = 0;
};
std::string encode(const Assignment& assignment);
Result<Assignment> decode_assignment(std::string_view bytes);

// The first bytes that an agent writes. Anything before them was written by the shell's start-up files.
std::string agent_greeting();
inline constexpr std::string_view kGreetingMark = "\001seto agent ";

}  // namespace seto::command
