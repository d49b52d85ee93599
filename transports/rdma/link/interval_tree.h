#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace seto::rdma {

// Intervals of addresses, which may overlap, and one that contains another in a time that grows with the logarithm of their
// number. The tree is that of a binary search in an array: the root of a part of the array is its middle. An insertion copies the
// array, so it is for intervals that come and go seldom.
template <class Value>
class IntervalTree final {
 public:
  struct Interval {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // behind the last address
    Value value{};
  };

  void insert(const Interval& interval) {
    const auto by_begin = [](const Interval& one, const Interval& other) { return one.begin < other.begin; };
    intervals_.insert(std::upper_bound(intervals_.begin(), intervals_.end(), interval, by_begin), interval);
    measure();
  }
  template <class Predicate>
  void erase_if(Predicate&& predicate) {
    std::erase_if(intervals_, std::forward<Predicate>(predicate));
    measure();
  }
  [[nodiscard]] std::size_t size() const { return intervals_.size(); }

  // An interval that contains all from begin to end, or null. Addresses that are none (the end before the begin) are in no
  // interval.
  [[nodiscard]] const Interval* containing(std::uint64_t begin, std::uint64_t end) const {
    if (end <= begin) return nullptr;
    std::size_t low = 0, high = intervals_.size();
    while (low < high && ends_[middle(low, high)] >= end) {
      const std::size_t root = middle(low, high);
      if (intervals_[root].begin > begin) {
        high = root;
        continue;
      }
      if (intervals_[root].end >= end) return &intervals_[root];
      // Everything on the left begins early enough, so only its ends decide.
      const bool left = root > low && ends_[middle(low, root)] >= end;
      left ? high = root : low = root + 1;
    }
    return nullptr;
  }

 private:
  static std::size_t middle(std::size_t low, std::size_t high) { return low + (high - low) / 2; }

  void measure() {
    ends_.assign(intervals_.size(), 0);
    (void)measure(0, intervals_.size());
  }
  std::uint64_t measure(std::size_t low, std::size_t high) {
    if (low >= high) return 0;
    const std::size_t root = middle(low, high);
    return ends_[root] = std::max({intervals_[root].end, measure(low, root), measure(root + 1, high)});
  }

  std::vector<Interval> intervals_;  // by begin
  std::vector<std::uint64_t> ends_;  // by root: the greatest end of its part of the array
};

}  // namespace seto::rdma
