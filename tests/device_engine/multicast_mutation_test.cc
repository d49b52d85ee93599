// The compiled kernel of NVLink multicast on the software GPU, in weak memory: it is right, and each flag access and barrier that
// is weakened is found within 200 seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/kernel_images.h"
#include "src/engine/kernels/multicast/multicast_program.h"
#include "tests/device_engine/kernel_text.h"
#include "tests/software_gpu/driver/fatbin.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

using kernels::kMulticastFlags;
using kernels::kMulticastUnit;
using software_gpu::FaultKind;

constexpr std::uint64_t kMostSeeds = 200;
constexpr std::uint32_t kRanks = 3;
constexpr std::uint64_t kPiece = 160 * kMulticastUnit;   // pieces that the threads of a block share
constexpr std::uint64_t kMulticastAddress = 1ULL << 46;  // no memory of the process lies there
constexpr std::uint64_t kLongest = 330 * kMulticastUnit + 4;

std::string multicast_ptx() {
  for (const cuda::KernelImage& image : kernels::kernel_images().images)
    if (std::string(image.name) == "multicast") return software_gpu::driver::ptx_of_image(image.data, kCapability);
  return {};
}

class Places final : public software_gpu::MulticastTargets {
 public:
  explicit Places(std::vector<std::uint64_t> begins) : begins_(std::move(begins)) {}
  std::vector<std::uint64_t> at(std::uint64_t offset, std::uint32_t /*bytes*/) override {
    std::vector<std::uint64_t> places;
    for (const std::uint64_t begin : begins_) places.push_back(begin + offset);
    return places;
  }

 private:
  std::vector<std::uint64_t> begins_;
};

// A call: its bytes, and its blocks.
struct Operation {
  std::uint64_t size;
  std::uint32_t blocks;
};

// Sums of int32 that follow each other: with several rounds of one block, and with two blocks, whose second one has little to do.
// Outputs lie at other places in a unit than inputs, so that a thread copies other bytes in than out.
constexpr Operation kOperations[] = {{kLongest, 1}, {170 * kMulticastUnit, 2}, {kLongest, 2}, {170 * kMulticastUnit, 1}};

class Team {
 public:
  Team(const std::string& ptx, std::uint64_t seed)
      : machine_({.gpus = kRanks, .multiprocessors = 2, .weak = true, .seed = seed, .step_budget = 3'000'000}) {
    program_ = &machine_.load(0, ptx);
    std::vector<std::uint64_t> begins;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      begins.push_back(zeros(rank, kMulticastFlags + 2 * kPiece, "memory of the library"));
      workspaces_.push_back(zeros(rank, sizeof(kernels::WorkspaceBegin), "workspace"));
      words_.push_back(zeros(rank, 8 * sizeof(std::uint64_t), "stop word and reports"));
    }
    own_ = begins;
    machine_.addresses().add({.address = kMulticastAddress,
                              .bytes = kMulticastFlags + 2 * kPiece,
                              .accessible = ~std::uint64_t{0},
                              .name = "multicast",
                              .multicast = std::make_shared<Places>(std::move(begins))});
  }

  // Each rank launches an operation when it has ended the one before, as on a stream. True: all results are right.
  bool run() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      for (const Operation& operation : kOperations) prepare(rank, operation);
    std::vector<std::size_t> launched(kRanks, 0);
    do {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank)
        if (launched[rank] < std::size(kOperations) && !is_running(rank)) launch(rank, launched[rank]++);
      machine_.run_some(16);
    } while (!machine_.idle() || launched != std::vector<std::size_t>(kRanks, std::size(kOperations)));
    bool right = true;
    for (const Memory& memory : memories_)
      for (std::uint64_t i = 0; i < memory.size / 4; ++i) right = right && word(memory.output + 4 + 4 * i) == sum_of(i);
    return right;
  }

 private:
  struct Memory {
    std::uint64_t input = 0, output = 0, program = 0, size = 0;
  };

  static std::uint32_t& word(std::uint64_t address) { return *reinterpret_cast<std::uint32_t*>(address); }
  static std::uint32_t value(std::uint32_t rank, std::uint64_t index) {
    return (rank + 1) * 0x9E3779B9U * static_cast<std::uint32_t>(index + 1);
  }
  static std::uint32_t sum_of(std::uint64_t index) {
    std::uint32_t sum = 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) sum += value(rank, index);
    return sum;
  }

  std::uint64_t zeros(std::uint32_t rank, std::uint64_t size, const char* name) {
    const std::uint64_t address = machine_.allocate(rank, size, name);
    std::memset(reinterpret_cast<void*>(address), 0, size);
    return address;
  }
  [[nodiscard]] bool is_running(std::uint32_t rank) const {
    return std::any_of(machine_.launches().begin(), machine_.launches().end(),
                       [&](const software_gpu::Launch& launch) { return launch.request.gpu == rank; });
  }
  void prepare(std::uint32_t rank, const Operation& operation) {
    const Memory memory{zeros(rank, operation.size, "input"), zeros(rank, operation.size + 4, "output"),
                        zeros(rank, sizeof(kernels::MulticastProgram), "program"), operation.size};
    for (std::uint64_t i = 0; i < operation.size / 4; ++i) word(memory.input + 4 * i) = value(rank, i);
    *reinterpret_cast<kernels::MulticastProgram*>(memory.program) = {
        .sum = kernels::MulticastSum::integer32,
        .rank = rank,
        .ranks = kRanks,
        .blocks = operation.blocks,
        .size = operation.size,
        .piece = kPiece,
        .own = own_[rank],
        .all = kMulticastAddress,
    };
    memories_.push_back(memory);
  }
  void launch(std::uint32_t rank, std::size_t operation) {
    const Memory& memory = memories_[rank * std::size(kOperations) + operation];
    kernels::LaunchArguments launch;
    kernels::DeviceArguments& arguments = launch.programs[0];
    arguments.program = memory.program;
    arguments.input = memory.input;
    arguments.output = memory.output + 4;
    arguments.workspace = workspaces_[rank];
    arguments.stop = words_[rank];
    arguments.reports = words_[rank] + sizeof(std::uint64_t);
    machine_.launch({.program = program_,
                     .kernel = "seto_run_multicast",
                     .gpu = rank,
                     .grid = {kOperations[operation].blocks},
                     .block = {64},
                     .arguments = software_gpu::arguments_of(launch)});
  }

  software_gpu::Machine machine_;
  const software_gpu::Program* program_ = nullptr;
  std::vector<std::uint64_t> own_, workspaces_, words_;
  std::vector<Memory> memories_;
};

std::string last_fault;  // for people

bool is_right(const std::string& ptx, std::uint64_t seed) {
  try {
    return Team(ptx, seed).run();
  } catch (const software_gpu::Fault& fault) {
    last_fault = fault.what();
    if (fault.kind() != FaultKind::race && fault.kind() != FaultKind::hang) throw;
    return false;
  }
}

// The first seed under which the kernel fails; 0: none.
std::uint64_t first_failure(const std::string& ptx, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    if (!is_right(ptx, seed)) return seed;
  return 0;
}

class MulticastMutation : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_kernels()) GTEST_SKIP() << needs_kernels();
    ptx_ = multicast_ptx();
    ASSERT_NE(ptx_, "");
  }

  // Makes a mutant at each place where the instruction stands, one at a time. `mutated` makes it from the whole instruction.
  template <class Mutated>
  void expect_each_place_matters(const std::string& instruction, const Mutated& mutated) {
    int places = 0;
    for (std::size_t at = ptx_.find(instruction); at != std::string::npos; at = ptx_.find(instruction, at + 1)) {
      if (at == left_out_) continue;
      ++places;
      const std::size_t size = ptx_.find(';', at) + 1 - at;
      const std::string before = ptx_.substr(at, size);
      std::string mutant = ptx_;
      mutant.replace(at, size, mutated(before));
      EXPECT_NE(first_failure(mutant, kMostSeeds), 0U) << "place " << places << ": " << before << " -> " << mutated(before);
    }
    EXPECT_GT(places, 0) << instruction << " is not in the kernel";
    std::printf("%d places of %s\n", places, instruction.c_str());
  }
  void expect_weaker_is_found(const std::string& from, const std::string& to) {
    expect_each_place_matters(from, [&](const std::string& instruction) { return to + instruction.substr(from.size()); });
  }

  std::string ptx_;
  std::size_t left_out_ = std::string::npos;
};

TEST_F(MulticastMutation, TheKernelIsRight) { EXPECT_EQ(first_failure(ptx_, 20), 0U) << last_fault; }

TEST_F(MulticastMutation, EachWeakerFlagIsFound) {
  const std::string store = "multimem.st.release.sys.global.u64", load = "ld.acquire.sys.global.u64";
  expect_weaker_is_found(store, "multimem.st.relaxed.sys.global.u64");
  expect_weaker_is_found(store, "multimem.st.release.gpu.global.u64");
  expect_weaker_is_found(store, "multimem.st.weak.global.u64");
  expect_weaker_is_found(load, "ld.relaxed.sys.global.u64");
  expect_weaker_is_found(load, "ld.acquire.gpu.global.u64");
  expect_weaker_is_found(load, "ld.weak.global.u64");
}

// The ranks do not wait for each other: a flag that is not there counts as one that came.
TEST_F(MulticastMutation, EachMissingMeetingIsFound) {
  expect_each_place_matters("ld.acquire.sys.global.u64", [](const std::string& load) {
    return "mov.u64" + load.substr(load.find(' '), load.find(',') - load.find(' ')) + ", 1000;";
  });
}

// A barrier of the block becomes one of the warp; one that also joins a predicate joins that of the warp only. The first one only
// tells the block that an earlier kernel was stopped.
TEST_F(MulticastMutation, EachMissingBarrierIsFound) {
  left_out_ = ptx_.find("bar.red.or.pred");
  expect_each_place_matters("bar.sync", [](const std::string&) { return std::string("bar.warp.sync -1;"); });
  expect_each_place_matters("bar.red.or.pred", [](const std::string& barrier) {
    const std::string result = barrier.substr(barrier.find('%'), barrier.find(',') - barrier.find('%'));
    const std::string operand = barrier.substr(barrier.rfind('%'), barrier.find(';') - barrier.rfind('%'));
    return "vote.sync.any.pred " + result + ", " + operand + ", -1; bar.warp.sync -1;";
  });
}

}  // namespace
}  // namespace seto::support
