#include "src/plan/group.h"

#include <algorithm>
#include <numeric>

#include "src/base/check.h"

namespace seto {

Range Range::part(int index, int parts) const {
  const auto at = static_cast<std::uint64_t>(index);
  const auto of = static_cast<std::uint64_t>(parts);
  const auto begin = static_cast<std::uint32_t>(count * at / of);
  const auto end = static_cast<std::uint32_t>(count * (at + 1) / of);
  return {first + begin, end - begin};
}

Group::Group(std::vector<Rank> members, std::uint8_t tag, Rank building) : members_(std::move(members)), tag_(tag) {
  SETO_CHECK(!members_.empty() && tag_ > 0);
  const auto at = std::find(members_.begin(), members_.end(), building);
  if (at != members_.end()) built_ = static_cast<int>(at - members_.begin());
}

Group Group::all(const Shape& shape, Rank building) {
  std::vector<Rank> members(static_cast<std::size_t>(shape.ranks));
  std::iota(members.begin(), members.end(), 0);
  return {std::move(members), 1, building};
}

Rank Group::operator[](int index) const {
  const int n = size();
  return members_[static_cast<std::size_t>((index % n + n) % n)];
}

std::vector<int> Group::touching(std::initializer_list<int> offsets) const {
  std::vector<int> indices;
  if (built_ < 0) return indices;
  const int n = size();
  for (const int offset : offsets) indices.push_back(((built_ - offset) % n + n) % n);
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

std::vector<int> Group::from_own() const {
  std::vector<int> indices;
  if (built_ < 0) return indices;
  for (int i = 1; i <= size(); ++i) indices.push_back((built_ + i) % size());
  return indices;
}

std::vector<int> Group::spokes(int hub) const {
  if (built_ != hub) return own();
  std::vector<int> indices;
  for (int i = 1; i < size(); ++i) indices.push_back((hub + i) % size());
  return indices;
}

}  // namespace seto
