#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "include/seto/seto.h"

namespace seto::soak {

// What is known of a type: `exact` is the greatest number up to which all integers have a representation of their own.
struct Type {
  setoDataType_t code;
  std::size_t size;
  bool floating;
  bool has_sign;
  std::int64_t exact;
};
inline constexpr int kTypes = setoNumTypes;
const Type& type_of(int index);

// An integer of 64 bits, whose sign is that of the type.
using Word = std::uint64_t;

// value / divisor as an element of the type: integers truncate toward zero, floats must be exact.
void store(const Type& type, Word value, int divisor, std::byte* at);

enum class Fold : std::uint8_t { sum, product, greatest, least, average, scaled_sum };
inline constexpr int kFolds = 6;

// The numbers that the ranks of one call bring, and what their reduction is. Pure: every rank knows all of them.
class Numbers final {
 public:
  Numbers(const Type& type, Fold fold, int ranks, std::uint64_t key);

  [[nodiscard]] Word of(int rank, std::size_t index) const;
  // Those of one rank, or of the reduction of all, from index `from` on.
  void store_own(int rank, std::size_t from, std::span<std::byte> target) const;
  void store_folded(std::size_t from, std::span<std::byte> target) const;
  [[nodiscard]] static Word scale_of(int rank) { return 1 + static_cast<Word>(rank) % 2; }

 private:
  [[nodiscard]] Word narrow(Word value) const;
  [[nodiscard]] Word folded(std::size_t index) const;

  const Type& type_;
  Fold fold_;
  int ranks_;
  std::uint64_t key_;
  bool wide_;          // any integer will do: what overflows wraps
  std::int64_t most_;  // else so much or less
  int contributors_;   // ranks from here on bring zeros
};

}  // namespace seto::soak
