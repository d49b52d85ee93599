#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace seto {

using Rank = std::int32_t;

// Identifies a context of a process; a process never reuses a number.
using ContextId = std::uint64_t;

// Identifies one attempt to make a communicator: the same number on all of its ranks, different for every other attempt.
using AttemptId = std::uint64_t;

// The values of all three enumerations are part of the C ABI and of messages between ranks. They are never renumbered.
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

// The bitwise operations are for integers only.
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

// True for types that are summed in the type itself. Only for these may an engine fold a chain of reduces into one pass.
bool accumulates_in_itself(DataType type);

std::string_view name_of(DataType type);
std::string_view name_of(ReduceOp op);
std::string_view name_of(Collective collective);

}  // namespace seto
