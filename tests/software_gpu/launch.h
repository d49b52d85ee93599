#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/software_gpu/program.h"

namespace seto::software_gpu {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;

  [[nodiscard]] std::uint32_t count() const { return x * y * z; }
  [[nodiscard]] std::array<std::uint32_t, 3> values() const { return {x, y, z}; }
};

struct LaunchRequest {
  const Program* program = nullptr;
  std::string kernel;
  std::uint32_t gpu = 0;
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t dynamic_shared = 0;
  std::vector<std::byte> arguments{};  // the param space of the kernel
};

// A kernel that runs, or waits for block slots.
struct Launch {
  LaunchRequest request;
  const Function* function = nullptr;
  std::uint32_t number = 0;
  std::uint64_t launched = 0;  // by the clock of the memory model
  std::uint32_t started = 0;   // blocks
  std::uint32_t finished = 0;  // blocks
};

// "GPU 0, kernel k, block (1,0,0), thread (3,0,0), ptx line 12: 'ld.global.u32 ...'"
[[nodiscard]] std::string place_in(const LaunchRequest& request, const std::array<std::uint32_t, 3>& block, std::uint32_t thread,
                                   std::uint32_t line);

// The param space that holds these values in order, each at its natural alignment.
template <class... T>
[[nodiscard]] std::vector<std::byte> arguments_of(const T&... values) {
  std::vector<std::byte> bytes;
  [[maybe_unused]] const auto add = [&](const auto& value) {
    const std::size_t at = (bytes.size() + alignof(decltype(value)) - 1) / alignof(decltype(value)) * alignof(decltype(value));
    bytes.resize(at + sizeof(value));
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  (add(values), ...);
  return bytes;
}

}  // namespace seto::software_gpu
