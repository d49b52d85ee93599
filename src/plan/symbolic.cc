#include "src/plan/symbolic.h"

#include <algorithm>

namespace seto {
namespace {

enum Tag : std::uint64_t { kLeaf = 1, kScale, kFinish, kRound, kFold, kDebt };

std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  std::uint64_t x = state ^ (word + 0x9e3779b97f4a7c15ULL + (state << 6) + (state >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

SymbolicValue derived(const SymbolicValue& value, std::uint64_t tag, std::uint64_t detail) {
  SymbolicValue result = value;
  result.digest = mixed(mixed(value.digest, tag), detail);
  result.chain = 0;
  result.has_bytes = false;
  return result;
}

}  // namespace

SymbolicValue contribution_of(Rank rank, std::uint32_t chunk) {
  SymbolicValue value;
  value.defined = true;
  value.digest = mixed(mixed(kLeaf, static_cast<std::uint64_t>(rank)), chunk);
  value.contributions = {{chunk, rank, false}};
  return value;
}

SymbolicValue scaled(const SymbolicValue& value, Rank by) {
  SymbolicValue result = derived(value, kScale, static_cast<std::uint64_t>(by));
  // Only a rank's own, unscaled contribution may be scaled, and only by that rank. Anything else gives a value that no
  // postcondition accepts.
  const bool right =
      value.contributions.size() == 1 && value.contributions.front().rank == by && !value.contributions.front().scaled;
  if (right) {
    result.contributions.front().scaled = true;
  } else {
    result.contributions.insert(result.contributions.end(), value.contributions.begin(), value.contributions.end());
    std::sort(result.contributions.begin(), result.contributions.end());
  }
  return result;
}

SymbolicValue finished(const SymbolicValue& value) {
  SymbolicValue result = derived(value, kFinish, 0);
  ++result.finishes;
  return result;
}

SymbolicValue rounded(const SymbolicValue& value) {
  SymbolicValue result = derived(value, kRound, 0);
  result.has_bytes = true;
  ++result.encodings;
  return result;
}

SymbolicValue rounded_with_debt(const SymbolicValue& value, Rank by) {
  SymbolicValue result = derived(value, kDebt, static_cast<std::uint64_t>(by));
  result.has_bytes = true;
  ++result.encodings;
  return result;
}

SymbolicValue folded(std::span<const SymbolicValue> values, Chains chains) {
  if (values.size() == 1) return values.front();
  SymbolicValue result;
  result.defined = true;
  const bool goes_on = chains == Chains::one_sum && values.front().chain != 0;
  result.chain = goes_on ? values.front().chain : mixed(kFold, values.front().digest);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const SymbolicValue& value = values[i];
    result.defined = result.defined && value.defined;
    if (i > 0) result.chain = mixed(result.chain, value.digest);
    result.contributions.insert(result.contributions.end(), value.contributions.begin(), value.contributions.end());
    result.finishes += value.finishes > 0 ? 2 : 0;  // a sum with a finished part passes no postcondition
    result.encodings = std::max(result.encodings, value.encodings);
  }
  std::sort(result.contributions.begin(), result.contributions.end());
  result.digest = mixed(result.chain, kFold);
  return result;
}

}  // namespace seto
