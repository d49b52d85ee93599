#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "src/engine/bound_program.h"

namespace seto {

// A rank's lowered programs, one for each way in which its buffers may lie. The other ranks do not know which one it uses.
struct LendingRank {
  const Program* apart = nullptr;
  const Program* in_place = nullptr;  // null: the call has no such form
};

// Finds the channels of a call whose messages need no slots if every GPU can read the buffers of every rank (decision 36): the
// content lies in the caller's buffers at the sender until all receivers have read it, however the buffers of the ranks lie. So
// all ranks find the same channels.
class DeviceLending final {
 public:
  DeviceLending(std::span<const LendingRank> ranks, const Shape& shape);

  // By channel of that program, for BindRequest::lent.
  [[nodiscard]] std::vector<LentChannel> channels_of(Rank rank, InPlace in_place) const;
  [[nodiscard]] bool any() const { return any_; }

 private:
  // A channel to one receiver: sender, group (or 0), port, receiver.
  using Address = std::tuple<Rank, std::uint8_t, std::uint16_t, Rank>;
  static Address address_of(const Channel& channel, Rank receiver) {
    return {channel.sender, channel.group, channel.port, receiver};
  }

  // The findings about one program.
  struct Variant {
    const Program* program = nullptr;
    std::map<Address, std::uint32_t> sent, received;  // steps
    std::vector<LentChannel> channels;                // that this variant alone could lend
  };

  [[nodiscard]] Variant variant_of(const Program& program) const;
  void find_places(Variant& variant, const Shape& shape, InPlace in_place) const;
  [[nodiscard]] bool waits_for_readers(const Variant& variant, std::uint32_t channel, std::uint32_t writer) const;
  void agree();

  std::vector<std::vector<Variant>> ranks_;  // by rank and InPlace
  bool any_ = false;
};

}  // namespace seto
