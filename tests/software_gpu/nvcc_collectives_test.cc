// Collectives as nvcc compiles them, on four GPUs with weak memory.
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "tests/software_gpu/kernel_test.h"
#include "tests/software_gpu/nvcc.h"

namespace seto::software_gpu {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kBlocks = 2;
constexpr std::uint32_t kThreads = 64;

// As in kernels/collectives.cu.
struct World {
  std::array<std::uint64_t, kRanks> input{}, output{}, flags{};
  std::int32_t count = 0;
  std::int32_t rank = 0;
  std::uint32_t epoch = 0;
};

// Each architecture is compiled once.
const std::string& ptx_of(const std::string& architecture) {
  static std::map<std::string, std::string> modules;
  std::string& text = modules[architecture];
  if (text.empty()) text = compile_to_ptx(*find_nvcc(), "collectives.cu", architecture);
  return text;
}

class NvccCollectives : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_nvcc()) GTEST_SKIP() << kNeedsNvcc;
    ASSERT_NE(ptx_of(GetParam()), "");
  }

  // Runs `operations` calls of the kernel on fresh GPUs; check(rank outputs, inputs) looks at the results of each.
  template <class T, class Check>
  void run(const char* kernel, std::uint32_t count, std::uint64_t seed, bool weak, const Check& check) {
    run_module<T>(ptx_of(GetParam()), kernel, count, seed, weak, check);
  }

  template <class T, class Check>
  static void run_module(const std::string& module, const char* kernel, std::uint32_t count, std::uint64_t seed, bool weak,
                         const Check& check) {
    Machine machine({.gpus = kRanks, .multiprocessors = 2, .weak = weak, .seed = seed});
    std::vector<DeviceArray<T>> inputs, outputs;
    std::vector<DeviceArray<std::uint64_t>> flags;
    World world{.count = static_cast<std::int32_t>(count)};
    std::vector<const Program*> programs;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      inputs.emplace_back(machine, rank, count, "input");
      outputs.emplace_back(machine, rank, count, "output");
      flags.emplace_back(machine, rank, 4 * count + 256, "flags");
      world.input[rank] = inputs[rank].address();
      world.output[rank] = outputs[rank].address();
      world.flags[rank] = flags[rank].address();
      programs.push_back(&machine.load(rank, module));
    }
    Random random(seed);
    for (std::uint32_t epoch = 1; epoch <= 2; ++epoch) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        for (std::uint32_t i = 0; i < count; ++i) inputs[rank][i] = random_element<T>(random);
        std::memset(outputs[rank].data(), 0xA5, count * sizeof(T));
      }
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        world.rank = static_cast<std::int32_t>(rank);
        world.epoch = epoch;
        machine.launch({.program = programs[rank],
                        .kernel = kernel,
                        .gpu = rank,
                        .grid = {kBlocks},
                        .block = {kThreads},
                        .arguments = arguments_of(world)});
      }
      machine.run();
      check(inputs, outputs);
    }
  }

  template <class T>
  static T random_element(Random& random) {
    if constexpr (std::is_same_v<T, float>)
      return static_cast<float>(static_cast<std::int32_t>(random.below(2'000'000)) - 1'000'000) / 1024.0F;
    else
      return static_cast<T>(random.next());
  }
};

template <class T>
using Arrays = std::vector<DeviceArray<T>>;

void check_float_sums(const Arrays<float>& inputs, const Arrays<float>& outputs) {
  for (std::size_t i = 0; i < outputs[0].values().size(); ++i) {
    const float sum = inputs[0][i] + inputs[1][i] + inputs[2][i] + inputs[3][i];
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) ASSERT_EQ(outputs[rank][i], sum) << "rank " << rank << ", element " << i;
  }
}

void check_integer_sums(const Arrays<std::uint32_t>& inputs, const Arrays<std::uint32_t>& outputs) {
  for (std::size_t i = 0; i < outputs[0].values().size(); ++i) {
    const std::uint32_t sum = inputs[0][i] + inputs[1][i] + inputs[2][i] + inputs[3][i];
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) ASSERT_EQ(outputs[rank][i], sum) << "rank " << rank << ", element " << i;
  }
}

// The words of the rank before, as another warp of its block has sent them.
void check_passed(const Arrays<std::uint32_t>& inputs, const Arrays<std::uint32_t>& outputs) {
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    for (std::size_t i = 0; i < outputs[rank].values().size(); ++i)
      ASSERT_EQ(outputs[rank][i], inputs[(rank + kRanks - 1) % kRanks][i ^ 32U]) << "rank " << rank << ", element " << i;
}

float from_bfloat(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

std::uint32_t to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::isnan(value) ? 0x7FFFU : (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
}

void check_bfloat_sums(const Arrays<std::uint32_t>& inputs, const Arrays<std::uint32_t>& outputs) {
  for (std::size_t i = 0; i < outputs[0].values().size(); ++i) {
    std::uint32_t sum = inputs[0][i];
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
      std::uint32_t pair = 0;
      for (std::uint32_t half = 0; half < 32; half += 16) {
        const float a = from_bfloat((sum >> half) & 0xFFFFU);
        pair |= to_bfloat(a + from_bfloat((inputs[rank][i] >> half) & 0xFFFFU)) << half;
      }
      sum = pair;
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) ASSERT_EQ(outputs[rank][i], sum) << "rank " << rank << ", element " << i;
  }
}

TEST_P(NvccCollectives, TwoShotFloat) {
  run<float>("two_shot_float", 4096, 1, false, check_float_sums);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) run<float>("two_shot_float", 524, seed, true, check_float_sums);
}

TEST_P(NvccCollectives, TwoShotBfloat) {
  run<std::uint32_t>("two_shot_bf16", 4096, 1, false, check_bfloat_sums);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) run<std::uint32_t>("two_shot_bf16", 524, seed, true, check_bfloat_sums);
}

TEST_P(NvccCollectives, FlagInWordOf8Bytes) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    run<std::uint32_t>("flag_in_word_8", kBlocks * kThreads, seed, true, check_integer_sums);
}

TEST_P(NvccCollectives, FlagInWordOf16Bytes) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    run<std::uint32_t>("flag_in_word_16", 3 * kBlocks * kThreads, seed, true, check_integer_sums);
}

constexpr std::uint32_t kSlotWords = 3 * kBlocks * kThreads;

TEST_P(NvccCollectives, ThroughSlots) {
  run<std::uint32_t>("through_slots", kSlotWords, 1, false, check_passed);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) run<std::uint32_t>("through_slots", kSlotWords, seed, true, check_passed);
}

// The text with each `from` replaced; it must be there.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

// Mutants of what nvcc has made. Their values are right in this memory, or in most runs; the race check must find each of them.
TEST_P(NvccCollectives, EachMutantHasARaceWithin200Seeds) {
  struct Mutant {
    const char* kernel;
    const char* from;
    const char* to;
  };
  const std::vector<Mutant> mutants{{"through_slots", "st.release.sys.global.u64", "st.relaxed.sys.global.u64"},
                                    {"through_slots", "st.release.sys.global.u64", "st.release.gpu.global.u64"},
                                    {"through_slots", "st.release.sys.global.u64", "st.global.u64"},
                                    {"through_slots", "ld.acquire.sys.global.u64", "ld.relaxed.sys.global.u64"},
                                    {"through_slots", "ld.acquire.sys.global.u64", "ld.acquire.gpu.global.u64"},
                                    {"through_slots", "ld.acquire.sys.global.u64", "ld.volatile.global.u64"},
                                    {"through_slots", "ld.acquire.sys.global.u64", "ld.global.u64"},
                                    {"through_slots", "st.release.sys.global.u32", "st.relaxed.sys.global.u32"},
                                    {"through_slots", "ld.acquire.sys.global.u32", "ld.relaxed.sys.global.u32"},
                                    {"through_slots", "bar.sync", "bar.warp.sync -1; //"},
                                    {"two_shot_float", "st.release.sys.global.u32", "st.relaxed.sys.global.u32"},
                                    {"two_shot_float", "st.release.sys.global.u32", "st.release.gpu.global.u32"},
                                    {"two_shot_float", "ld.acquire.sys.global.u32", "ld.acquire.gpu.global.u32"},
                                    {"two_shot_float", "ld.acquire.sys.global.u32", "ld.volatile.global.u32"},
                                    {"flag_in_word_8", "st.relaxed.sys.global.u64", "st.relaxed.gpu.global.u64"},
                                    {"flag_in_word_8", "st.relaxed.sys.global.u64", "st.global.u64"},
                                    {"flag_in_word_8", "ld.relaxed.sys.global.u64", "ld.global.u64"},
                                    {"flag_in_word_16", "st.relaxed.sys.global.b128", "st.relaxed.cta.global.b128"}};
  for (const Mutant& mutant : mutants) {
    const std::string text = replaced(ptx_of(GetParam()), mutant.from, mutant.to);
    bool is_killed = false;
    const auto no_check = [](const auto&, const auto&) {};
    for (std::uint64_t seed = 1; seed <= 200 && !is_killed; ++seed) {
      try {
        run_module<std::uint32_t>(text, mutant.kernel, kSlotWords, seed, true, no_check);
      } catch (const Fault& fault) {
        ASSERT_EQ(fault.kind(), FaultKind::race) << fault.what();
        is_killed = true;
      }
    }
    EXPECT_TRUE(is_killed) << mutant.kernel << ": " << mutant.to;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvccCollectives, ::testing::Values("compute_80", "compute_90"),
                         [](const auto& architecture) { return std::string(architecture.param); });

}  // namespace
}  // namespace seto::software_gpu
