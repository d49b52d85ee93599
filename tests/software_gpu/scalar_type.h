#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace seto::software_gpu {

enum class ScalarType : std::uint8_t {
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64,
  e4m3x2,
  e5m2x2,
};

struct TypeRow {
  std::string_view name;
  std::uint8_t bytes;
};

// In the order of ScalarType.
inline constexpr std::array<TypeRow, 22> kTypes{{{"pred", 1}, {"b8", 1},  {"b16", 2},    {"b32", 4},   {"b64", 8},  {"b128", 16},
                                                 {"u8", 1},   {"u16", 2}, {"u32", 4},    {"u64", 8},   {"s8", 1},   {"s16", 2},
                                                 {"s32", 4},  {"s64", 8}, {"f16", 2},    {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4},
                                                 {"f32", 4},  {"f64", 8}, {"e4m3x2", 2}, {"e5m2x2", 2}}};

[[nodiscard]] constexpr std::uint32_t size_of(ScalarType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

[[nodiscard]] constexpr bool is_signed(ScalarType type) { return type >= ScalarType::s8 && type <= ScalarType::s64; }

[[nodiscard]] constexpr bool is_float(ScalarType type) { return type == ScalarType::f32 || type == ScalarType::f64; }

[[nodiscard]] constexpr std::optional<ScalarType> type_named(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i].name == name) return static_cast<ScalarType>(i);
  return std::nullopt;
}

}  // namespace seto::software_gpu
