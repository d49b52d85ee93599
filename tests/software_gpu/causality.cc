#include "tests/software_gpu/causality.h"

#include <algorithm>
#include <tuple>

namespace seto::software_gpu {
namespace {

bool is_before(const Moment& a, const Moment& b) { return std::tie(a.block, a.thread) < std::tie(b.block, b.thread); }

}  // namespace

bool Clocks::knows(const Moment& moment) const {
  const auto first = std::lower_bound(moments_.begin(), moments_.end(), moment,
                                      [](const Moment& a, const Moment& b) { return a.block < b.block; });
  if (first == moments_.end() || first->block != moment.block || first->phase < moment.phase) return false;
  if (first->phase > moment.phase) return true;
  const auto own = std::lower_bound(first, moments_.end(), moment, is_before);
  return own != moments_.end() && own->is_same_thread(moment) && own->clock >= moment.clock;
}

void Clocks::add(std::span<const Moment> moments) {
  const auto is_unlike_first = [&](const Moment& one) {
    return one.block != moments.front().block || one.phase != moments.front().phase;
  };
  if (std::any_of(moments.begin(), moments.end(), is_unlike_first)) {
    for (const Moment& moment : moments) merge({moment});
    return;
  }
  std::vector<Moment> ordered(moments.begin(), moments.end());
  std::sort(ordered.begin(), ordered.end(), is_before);
  merge(ordered);
}

void Clocks::join(const Clocks& other) {
  ended_ = std::max(ended_, other.ended_);
  merge(other.moments_);
}

bool Clocks::has_entries_of(std::uint32_t block) const {
  return std::any_of(moments_.begin(), moments_.end(), [block](const Moment& one) { return one.block == block; });
}

void Clocks::drop_entries_of(std::uint32_t block) {
  std::erase_if(moments_, [block](const Moment& one) { return one.block == block; });
}

void Clocks::merge(const std::vector<Moment>& other) {
  std::vector<Moment> merged;
  merged.reserve(moments_.size() + other.size());
  auto a = moments_.cbegin();
  auto b = other.cbegin();
  while (a != moments_.cend() && b != other.cend()) {
    if (a->block == b->block && a->phase != b->phase) {  // the later phase knows all of the earlier one
      ++(a->phase < b->phase ? a : b);
    } else if (a->is_same_thread(*b)) {
      merged.push_back(a->clock > b->clock ? *a : *b);
      ++a;
      ++b;
    } else {
      merged.push_back(is_before(*a, *b) ? *a++ : *b++);
    }
  }
  merged.insert(merged.end(), a, moments_.cend());
  merged.insert(merged.end(), b, other.cend());
  moments_ = std::move(merged);
}

}  // namespace seto::software_gpu
