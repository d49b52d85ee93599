#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace seto::tcp {

// A queue that allocates only when it has never been so long.
template <class T>
class Fifo final {
 public:
  [[nodiscard]] bool empty() const { return first_ == last_; }
  [[nodiscard]] std::size_t size() const { return last_ - first_; }
  [[nodiscard]] T& operator[](std::size_t index) { return items_[(first_ + index) & (items_.size() - 1)]; }
  [[nodiscard]] T& front() { return (*this)[0]; }
  void push(T item) {
    if (size() == items_.size()) grow();
    items_[last_++ & (items_.size() - 1)] = std::move(item);
  }
  T pop() { return std::exchange(items_[first_++ & (items_.size() - 1)], T{}); }
  // Keeps the order of the others.
  template <class Unwanted>
  void drop_if(Unwanted&& unwanted) {
    std::size_t kept = 0;
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) {
      if (unwanted((*this)[i])) continue;
      if (kept != i) (*this)[kept] = std::move((*this)[i]);
      ++kept;
    }
    for (std::size_t i = kept; i < count; ++i) (*this)[i] = T{};
    last_ = first_ + kept;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : items_.size() * 2);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    first_ = 0;
    last_ = count;
  }

  std::vector<T> items_;  // a power of two of them
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

}  // namespace seto::tcp
