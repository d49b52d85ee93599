#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace seto::tcp {

// Memory into which messages are received, in sizes of powers of two. What was given back last is taken first, because it is
// still in the cache. Not thread safe: the domain's lock covers it.
class Landing final {
 public:
  static constexpr std::size_t kAlignment = 64;

  Landing() = default;
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
  ~Landing();

  // Null: out of memory, or beyond the limit of what may be in use at once.
  std::byte* take(std::size_t size);
  void give_back(std::byte* memory, std::size_t size);

  [[nodiscard]] std::size_t in_use() const { return in_use_; }
  void set_limit(std::size_t limit) { limit_ = limit; }

 private:
  static constexpr std::size_t kClasses = 32;
  static constexpr std::size_t kKept = std::size_t{32} << 20;  // bytes that wait for their next use

  std::array<std::vector<std::byte*>, kClasses> free_;
  std::size_t in_use_ = 0;
  std::size_t kept_ = 0;
  std::size_t limit_ = std::size_t{4} << 30;
};

}  // namespace seto::tcp
