// The bytes that compiled kernels move, against what their program needs, and the flags that they send.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/device_engine/kernel_text.h"
#include "tests/device_engine/machine_devices.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

// Every operand of every step once. What is lent is not written, and a step that only lends reads nothing.
std::uint64_t floor_of(const std::vector<BoundProgram>& programs) {
  std::uint64_t bytes = 0;
  for (const BoundProgram& program : programs)
    for (const BoundStep& step : program.steps)
      for (std::uint32_t piece = 0; piece < step.pieces; ++piece) {
        const std::uint64_t length = program.lengths[step.first_piece + piece];
        const auto targets = program.targets_of(step);
        const auto is_lent = [&](const BoundTarget& target) {
          return target.space == Space::channel && program.streams[target.stream].lent;
        };
        if (std::all_of(targets.begin(), targets.end(), is_lent)) continue;
        for (const BoundSource& source : program.sources_of(step)) bytes += program.size_of_elements(length, source.coded);
        for (const BoundTarget& target : targets)
          if (!is_lent(target))
            bytes += program.size_of_elements(length, target.coded) *
                     (target.space == Space::channel ? program.streams[target.stream].receivers.size() : 1);
      }
  return bytes;
}

TEST(KernelTraffic, IsWithin5PercentOfTheFloorFrom1MiB) {
  if (!has_kernels()) GTEST_SKIP() << needs_kernels();
  struct Case {
    const char* algorithm;
    int ranks;
    DataType type;
    std::optional<Codec> codec;
    bool lends = false;
  };
  for (const Case& one : {Case{"ring", 4, DataType::float32, {}}, Case{"two_shot", 4, DataType::float32, {}},
                          Case{"ring", 2, DataType::bfloat16, {}}, Case{"two_shot", 2, DataType::float32, Codec::int8},
                          Case{"two_shot", 4, DataType::float32, {}, true}, Case{"ring", 4, DataType::float32, {}, true}}) {
    DeviceJob job{find_algorithm(one.algorithm, Collective::all_reduce), one.ranks, one.type, ReduceOp::sum};
    job.codec = one.codec;
    job.lends = one.lends;
    job.count = (1 << 20) / size_of(one.type) + 3;
    job.slice_elements = (128 << 10) / size_of(one.type);
    job.blocks = 2;
    ASSERT_TRUE(job.exists()) << job.text();
    const std::vector<BoundProgram> programs = job.programs();
    const std::string ptx = kernel_ptx(programs.front());
    ASSERT_NE(ptx, "") << "the library has kernels, but not that of " << job.text();
    std::vector<std::vector<DeviceMemory>> operations(1);
    for (Rank rank = 0; rank < job.ranks; ++rank) operations[0].emplace_back(job, rank, 2);
    MachineDevices devices(
        {.ptx = ptx, .kernel = kernel_name(programs.front()), .weak = false, .threads = 256, .step_budget = 1'000'000'000},
        {{programs, job.cut()}});
    devices.run(operations);
    const double ratio = static_cast<double>(devices.traffic()) / static_cast<double>(floor_of(programs));
    std::printf("%s: %.4f of the floor\n", job.text().c_str(), ratio);
    EXPECT_LE(ratio, 1.05) << job.text();
    EXPECT_GE(ratio, 0.999) << job.text();  // else something is not counted
  }
}

// A rank tells each other one that a message is there, that it has read one, and at last that it has done the operation. Rank 0
// alone sends what depends on no other rank: with one exchange, all of its messages.
TEST(KernelFlags, ASmallOneShotSumIsOneExchange) {
  if (!has_kernels()) GTEST_SKIP() << needs_kernels();
  struct Case {
    const char* algorithm;
    std::uint64_t messages;  // of a pair of ranks, in each direction
    bool marked = false;
  };
  for (const std::uint64_t ranks : {2U, 3U, 8U})
    for (const Case& one : {Case{"one_shot", 1}, Case{"two_shot", 2}, Case{"one_shot", 0, true}}) {
      DeviceJob job{find_algorithm(one.algorithm, Collective::all_reduce), static_cast<int>(ranks), DataType::float32,
                    ReduceOp::sum};
      job.count = 24;
      job.marked = one.marked;
      ASSERT_TRUE(job.exists()) << job.text();
      const std::vector<BoundProgram> programs = job.programs();
      const std::string ptx = kernel_ptx(programs.front());
      ASSERT_NE(ptx, "") << "the library has kernels, but not that of " << job.text();
      std::vector<std::vector<DeviceMemory>> operations(1);
      for (Rank rank = 0; rank < job.ranks; ++rank) operations[0].emplace_back(job, rank, 2);
      MachineDevices devices({.ptx = ptx, .kernel = kernel_name(programs.front()), .weak = false, .turns_alone = 20'000},
                             {{programs, job.cut()}});
      devices.run(operations);
      const std::uint64_t flags = one.marked ? 0 : 2 * one.messages + 1;  // marked words need none
      for (std::uint64_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(devices.flags_of(rank), flags * (ranks - 1)) << job.text() << ", rank " << rank;
      EXPECT_EQ(devices.flags_sent_alone(), one.marked ? 0 : ranks - 1) << job.text();
    }
}

}  // namespace
}  // namespace seto::support
