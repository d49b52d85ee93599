#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace seto {

// A set of cores, as the kernel and hwloc write it: hexadecimal words of 32 bits, separated by commas, the highest first.
class CoreSet {
 public:
  static constexpr std::size_t kMostWords = 256;

  // Accepts "00000000,000000ff" and hwloc's "0x00000001,,0x000000ff", in which an empty word is 0.
  static std::optional<CoreSet> parse(std::string_view text);

  // The cores that this thread may run on. Empty: the kernel does not tell.
  static CoreSet of_thread();

  void add(std::size_t core);
  [[nodiscard]] bool contains(std::size_t core) const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] bool empty() const { return words_.empty(); }
  // The cores that both sets contain.
  [[nodiscard]] CoreSet both(const CoreSet& other) const;

  // The kernel's form without leading words of zeros. Empty for an empty set.
  [[nodiscard]] std::string text() const;
  // For people: 0-31,64-95.
  [[nodiscard]] std::string ranges() const;

  friend bool operator==(const CoreSet&, const CoreSet&) = default;

 private:
  void trim();

  std::vector<std::uint32_t> words_;  // the lowest cores first; the last word is not 0
};

}  // namespace seto
