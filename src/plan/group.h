#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace seto {

// Logical chunks, contiguous.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 1;

  // The index-th of `parts` parts, as even as whole chunks allow.
  [[nodiscard]] Range part(int index, int parts) const;

  friend bool operator==(const Range&, const Range&) = default;
};

// Ranks that work together in one phase of a plan, in an agreed order. `tag` tells a sender's multicast groups apart: on one
// sender, equal tags mean equal members.
class Group {
 public:
  Group(std::vector<Rank> members, std::uint8_t tag, Rank building);
  static Group all(const Shape& shape, Rank building);

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] std::uint8_t tag() const { return tag_; }
  [[nodiscard]] std::span<const Rank> members() const { return members_; }
  Rank operator[](int index) const;  // wraps round, so that rings read naturally

  // Views: they enumerate only what touches the rank that is being built, so that its program costs its own share.
  // `touching({a, b})`: every i, ascending, with the built rank at index i + a or i + b.
  [[nodiscard]] std::vector<int> touching(std::initializer_list<int> offsets) const;
  // As touching({0}): the built rank's own index, or nothing.
  [[nodiscard]] std::vector<int> own() const { return touching({0}); }
  // Every member, beginning after the built rank and ending with it: ranks that all address all do not start on the same one.
  [[nodiscard]] std::vector<int> from_own() const;
  // Of statements between `hub` and each other member: all others at the hub, its own elsewhere.
  [[nodiscard]] std::vector<int> spokes(int hub) const;
  [[nodiscard]] bool includes_built() const { return built_ >= 0; }
  [[nodiscard]] int built_index() const { return built_; }

 private:
  std::vector<Rank> members_;
  std::uint8_t tag_;
  int built_ = -1;
};

}  // namespace seto
