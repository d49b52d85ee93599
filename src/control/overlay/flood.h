#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace seto {

// The members that `own` has a channel to in the overlay of so many members: those at distances 1, 2, 4, ... on both sides, in
// ascending order. All members compute the same pairs. Two members are at most ceil(log2(members)) channels apart.
[[nodiscard]] std::vector<std::uint32_t> overlay_neighbours(std::uint32_t own, std::uint32_t members);

// Messages to all members over the channels of an overlay. A member passes each message on once, when it first hears it.
//
// If every channel keeps the order, and each member sends what say() and hear() give in the order of these calls, then every
// member hears the messages of an origin in order, and hears no message before those that its origin had said or heard before it.
// The memory is one number for each member. Pure: no socket, no lock.
class Flood final {
 public:
  // What precedes the bytes of a message on a channel.
  static constexpr std::size_t kHeadSize = 16;

  Flood(std::uint32_t own, std::uint32_t members);

  [[nodiscard]] const std::vector<std::uint32_t>& neighbours() const { return neighbours_; }

  // The message to send to all neighbours. It is not heard here.
  [[nodiscard]] std::string say(std::string_view bytes);

  struct Heard {
    bool first = false;  // else it was heard before, and nothing is done with it
    std::uint32_t origin = 0;
    std::string_view bytes;  // of the message that was given
  };
  // A message that is heard first is passed on as it is, to all neighbours but the one that it came from. Fails if the message is
  // malformed, or if an earlier one of its origin is missing: no channel that keeps the order brings such a message.
  [[nodiscard]] Result<Heard> hear(std::string_view message);

 private:
  const std::uint32_t own_;
  const std::vector<std::uint32_t> neighbours_;
  std::vector<std::uint64_t> last_;  // by origin: the number of its last message that was heard, or said
};

}  // namespace seto
