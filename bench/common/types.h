#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "seto/seto.h"

namespace seto::bench {

// The order of `-o all`. mul_sum is a custom pre-multiplied sum; each rank has its own scalar.
enum class Op : std::uint8_t { sum, prod, max, min, avg, mul_sum };

std::span<const setoDataType_t> all_types();
std::span<const Op> all_ops();
// Codecs apply only to these operations.
constexpr bool sums(Op op) { return op == Op::sum || op == Op::avg || op == Op::mul_sum; }

// Names as nccl-tests prints them; parsing also takes the usual other spellings (fp16, bf16, float32, e4m3, ...).
std::string_view name_of(setoDataType_t type);
std::string_view name_of(Op op);
std::optional<setoDataType_t> parse_type(std::string_view name);
std::optional<Op> parse_op(std::string_view name);

std::size_t size_of(setoDataType_t type);

}  // namespace seto::bench
