#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <random>

namespace seto::testing {

// A new seed for each run, which is printed; --gtest_random_seed repeats it.
inline std::uint64_t chosen_seed() {
  const auto asked = static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed));
  const std::uint64_t seed = asked != 0 ? asked : 1 + std::random_device{}() % 99'999;
  std::printf("seed %llu (repeat with --gtest_random_seed)\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace seto::testing
