#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace seto {

// Whether a left fold of a left fold is the same value as one longer fold. It is where the accumulator type is the element type.
enum class Chains : std::uint8_t { separate, one_sum };

// What a place holds while a plan is verified: an expression over the ranks' inputs.
struct SymbolicValue {
  struct Contribution {
    std::uint32_t chunk;
    Rank rank;
    bool scaled;

    friend auto operator<=>(const Contribution&, const Contribution&) = default;
  };

  bool defined = false;
  std::uint64_t digest = 0;                 // of the expression, order of folding included
  std::uint64_t chain = 0;                  // digest state of an open chain of sums: a left fold goes on from here
  std::vector<Contribution> contributions;  // sorted; a repeated one was added twice
  std::uint32_t finishes = 0;               // 1: of the whole; more: of parts, or repeated
  std::uint32_t encodings = 0;              // lossy encodings passed through, the most of any path
  bool has_bytes = false;                   // it is what its codec left of it, and the bytes are at hand
};

SymbolicValue contribution_of(Rank rank, std::uint32_t chunk);
SymbolicValue scaled(const SymbolicValue& value, Rank by);
SymbolicValue finished(const SymbolicValue& value);
SymbolicValue rounded(const SymbolicValue& value);
// With what that rank owes of it: no two ranks' are alike.
SymbolicValue rounded_with_debt(const SymbolicValue& value, Rank by);
SymbolicValue folded(std::span<const SymbolicValue> values, Chains chains);

}  // namespace seto
