#pragma once

#include <array>
#include <cstdint>

#include "tests/software_gpu/ptx_syntax.h"

namespace seto::software_gpu {

class Thread;
struct Instruction;
using Handler = void (*)(Thread&, const Instruction&);

enum class SpecialRegister : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  clock,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
};

struct Operand {
  enum class Kind : std::uint8_t { reg, immediate, special, local_symbol, param_symbol };

  Kind kind = Kind::immediate;
  bool negated = false;     // of a predicate
  std::uint32_t index = 0;  // register slot or SpecialRegister
  std::uint64_t value = 0;  // immediate, or the offset of a symbol in its frame
};

enum class Order : std::uint8_t { weak, read_only, relaxed, acquire, release, acquire_release, sequential };
enum class Scope : std::uint8_t { block, gpu, system };

[[nodiscard]] constexpr bool is_strong(Order order) { return order >= Order::relaxed; }
[[nodiscard]] constexpr bool acquires(Order order) {
  return order == Order::acquire || order == Order::acquire_release || order == Order::sequential;
}
[[nodiscard]] constexpr bool releases(Order order) {
  return order == Order::release || order == Order::acquire_release || order == Order::sequential;
}

// Decoded once. Which operands are sources (`s`) and destinations (`d`) is decided by the group of the instruction.
struct Instruction {
  Handler handler = nullptr;
  std::int32_t predicate = -1;  // register slot; -1: always executed
  bool predicate_negated = false;
  std::uint8_t destinations = 0;
  std::uint8_t sources = 0;
  std::uint8_t elements = 1;  // of a vector
  Space space = Space::generic;
  Order order = Order::weak;
  Scope scope = Scope::system;
  ScalarType type = ScalarType::b32;
  std::uint32_t line = 0;
  std::uint32_t target = 0;  // instruction, function or table
  std::uint32_t detail = 0;  // comparison, rounding, lookup table: each group has its own meaning
  std::uint32_t flags = 0;   // likewise
  std::array<Operand, 8> d{};
  std::array<Operand, 8> s{};
  Operand base{};  // of an address
  std::uint64_t offset = 0;
};

}  // namespace seto::software_gpu
