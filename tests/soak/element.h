#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "include/seto/seto.h"

namespace seto::soak {

// Facts about a type. `exact` is the largest number up to which every integer has an exact representation.
struct Type {
  setoDataType_t code;
  std::size_t size;
  bool floating;
  bool has_sign;
  std::int64_t exact;
};
inline constexpr int kTypes = setoNumTypes;
const Type& type_of(int index);
// The index of the same type with numbers that are exact in fp16, too.
int within_fp16(int index);

// An integer of 64 bits, with the sign of the type.
using Word = std::uint64_t;

// Stores value / divisor as an element of the type. Integers truncate toward zero; floats must be exact.
void store(const Type& type, Word value, int divisor, std::byte* at);

enum class Fold : std::uint8_t { sum, product, greatest, least, average, scaled_sum };
inline constexpr int kFolds = 6;

// The inputs of the ranks of one call, and their reduction. It is pure: every rank can compute all of them.
class Numbers final {
 public:
  Numbers(const Type& type, Fold fold, int ranks, std::uint64_t key);

  [[nodiscard]] Word of(int rank, std::size_t index) const;
  // Stores the inputs of one rank, or the reduction of all ranks, from index `from` on.
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
  bool wide_;          // any integer is allowed, because overflow wraps
  std::int64_t most_;  // otherwise the largest magnitude
  int contributors_;   // ranks from here on contribute zeros
};

}  // namespace seto::soak
