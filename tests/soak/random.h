#pragma once

#include <cstdint>

namespace seto::soak {

constexpr std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27) * 0x94d049bb133111ebU;
  return value ^ value >> 31;
}

// A hash of two numbers that depends on their order.
constexpr std::uint64_t mixed(std::uint64_t one, std::uint64_t other) {
  return mixed(mixed(one) ^ (other + 0x632be59bd9b4e019U));
}

// The same sequence on every machine and in every process that starts with the same key.
class Random final {
 public:
  explicit Random(std::uint64_t key) : state_(mixed(key)) {}
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15U); }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  int index(int bound) { return static_cast<int>(below(static_cast<std::uint64_t>(bound))); }
  bool one_in(std::uint64_t many) { return below(many) == 0; }
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace seto::soak
