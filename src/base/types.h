#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace seto {

using Rank = std::int32_t;

// Values of all three are part of the C ABI and of what ranks tell each other: never renumbered.
enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  bfloat16,
  float8e4m3,
  float8e5m2,
};
inline constexpr int kDataTypeCount = 12;

// The bitwise ones of integers alone.
enum class ReduceOp : std::uint8_t { sum, prod, max, min, avg, premul_sum, bit_and, bit_or, bit_xor };
inline constexpr int kReduceOpCount = 9;
constexpr bool is_bitwise(ReduceOp op) { return op >= ReduceOp::bit_and && op <= ReduceOp::bit_xor; }

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  barrier,
};
inline constexpr int kCollectiveCount = 9;

std::size_t size_of(DataType type);
bool is_integer(DataType type);

// Types whose sums are formed in the type itself: only there may an engine fold a chain of reduces into one pass.
bool accumulates_in_itself(DataType type);

std::string_view name_of(DataType type);
std::string_view name_of(ReduceOp op);
std::string_view name_of(Collective collective);

}  // namespace seto
