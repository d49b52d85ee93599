#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace seto {

// A contiguous range of logical chunks.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 1;

  // The index-th of `parts` parts; the parts are as even as whole chunks allow.
  [[nodiscard]] Range part(int index, int parts) const;

  friend bool operator==(const Range&, const Range&) = default;
};

// Ranks that work together in one phase of a plan, in an agreed order. `tag` identifies a sender's multicast group: on one
// sender, equal tags mean equal members.
class Group {
 public:
  Group(std::vector<Rank> members, std::uint8_t tag, Rank building);
  static Group all(const Shape& shape, Rank building);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] std::uint8_t tag() const { return tag_; }
  [[nodiscard]] std::span<const Rank> members() const { return members_; }
  Rank operator[](int index) const;  // the index wraps around, as rings need

  // Views list only the indices that concern the rank whose program is built, so that building costs only that rank's share.
  // `touching({a, b})` returns, in ascending order, every i with the built rank at index i + a or i + b.
  [[nodiscard]] std::vector<int> touching(std::initializer_list<int> offsets) const;
  // touching({0}): the index of the built rank, or nothing.
  [[nodiscard]] std::vector<int> own() const { return touching({0}); }
  // Every member, starting after the built rank and ending with it, so that ranks that send to all do not all start with the same
  // receiver.
  [[nodiscard]] std::vector<int> from_own() const;
  // For statements between `hub` and each other member: all other indices on the hub, its own index on the other members.
  [[nodiscard]] std::vector<int> spokes(int hub) const;
  [[nodiscard]] bool includes_built() const { return built_ >= 0; }
  [[nodiscard]] int built_index() const { return built_; }

 private:
  std::vector<Rank> members_;
  std::uint8_t tag_;
  int built_ = -1;
};

}  // namespace seto
