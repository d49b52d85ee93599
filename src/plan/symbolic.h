#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace seto {

// States whether a left fold whose first source is a left fold equals one longer fold. It does where the accumulator type is the
// element type.
enum class Chains : std::uint8_t { separate, one_sum };

// The content of a place while a plan is verified: an expression over the ranks' inputs.
struct SymbolicValue {
  struct Contribution {
    std::uint32_t chunk;
    Rank rank;
    bool scaled;

    friend auto operator<=>(const Contribution&, const Contribution&) = default;
  };

  bool defined = false;
  std::uint64_t digest = 0;                 // digest of the expression, including the order of folding
  std::uint64_t chain = 0;                  // digest state of an open chain of sums, from which a left fold continues
  std::vector<Contribution> contributions;  // sorted; a repeated one was added twice
  std::uint32_t finishes = 0;               // 1: the whole was finished; more: parts were, or it was repeated
  std::uint32_t encodings = 0;              // most lossy encodings on any path
  bool has_bytes = false;                   // it was rounded by its codec, and the encoded bytes exist
};

SymbolicValue contribution_of(Rank rank, std::uint32_t chunk);
SymbolicValue scaled(const SymbolicValue& value, Rank by);
SymbolicValue finished(const SymbolicValue& value);
SymbolicValue rounded(const SymbolicValue& value);
// With the residual of that rank added before rounding. The results of two ranks differ.
SymbolicValue rounded_with_debt(const SymbolicValue& value, Rank by);
SymbolicValue folded(std::span<const SymbolicValue> values, Chains chains);

}  // namespace seto
