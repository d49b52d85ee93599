#pragma once

#include <cstdint>
#include <vector>

#include "tests/device_memory/device_ranks.h"

namespace seto::testing {

// Calls whose messages are long enough that GPUs read them in the buffers of their peers.
inline constexpr int kRanks = 3;
inline constexpr std::size_t kLent = 13'000;  // a third of it is 17 KiB, which is lent
inline constexpr const char* kLends = "read in the buffers of the peers";

inline std::vector<std::int32_t> all_of(std::int32_t value, std::size_t count = kLent) {
  return std::vector<std::int32_t>(count, value);
}

inline setoResult_t lent_sum(DeviceRank& mine, const std::int32_t* input, std::int32_t* output,
                             const char* algorithm = "two_shot") {
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  EXPECT_TRUE(succeeded(setoAlgorithmId(algorithm, &config.algorithm)));
  return setoAllReduceConfig(input, output, kLent, setoInt32, setoSum, mine.comm, mine.stream(), &config);
}

}  // namespace seto::testing
