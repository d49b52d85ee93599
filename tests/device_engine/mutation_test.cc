// Each fence, scope, flag access and barrier of the compiled kernel, weakened one at a time: the software GPU must find a race or
// wrong values within 200 seeds.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/device_engine/kernel_text.h"
#include "tests/device_engine/machine_devices.h"
#include "tests/software_gpu/fault.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kMostSeeds = 200;
constexpr std::uint64_t kOperations = 4;  // one after another in the same workspaces

// Calls that take turns. In a chain all of them work on the same memory, and `fused` says by rank how many are one launch.
struct Group {
  std::vector<DeviceJob> jobs;
  std::vector<std::uint32_t> fused{};
  std::uint64_t exchanges = 0;  // of marked messages, before the first operation
};

// Calls that use every flag: rings with more slices than slots, so that senders wait for credit, in blocks of two warps. The
// calls of a group take turns in the same workspaces, where each puts other data in the place of the other's flags and slots.
// In one group messages are marked, and the second exchange begins an age of marks; no end of a kernel orders it. In two groups
// messages are lent, and the callers write to their input as soon as they may. In the chain, blocks of one call read what other
// blocks have written in the call before, and the first call has fewer blocks; one rank launches all calls at once.
std::vector<Group> groups() {
  DeviceJob ring{find_algorithm("ring", Collective::all_reduce), 2, DataType::int32, ReduceOp::sum, 640};
  ring.slice_elements = 32;
  DeviceJob two_blocks = ring;
  two_blocks.count = 300;
  two_blocks.slice_elements = 64;
  two_blocks.blocks = 2;
  DeviceJob gather{find_algorithm("ring", Collective::all_gather), 3, DataType::int32, ReduceOp::sum, 100};
  gather.slice_elements = 50;
  DeviceJob two_shot{find_algorithm("two_shot", Collective::all_reduce), 3, DataType::int32, ReduceOp::sum, 90};
  DeviceJob lent_sum = two_shot;
  lent_sum.slice_elements = 16;
  DeviceJob lent_parts{find_algorithm("direct", Collective::all_gather), 3, DataType::int32, ReduceOp::sum, 100};
  lent_parts.blocks = 2;
  lent_sum.lends = lent_parts.lends = true;
  DeviceJob lent_in_place = lent_sum;
  lent_in_place.in_place = true;
  DeviceJob one_block = two_shot;
  one_block.count = 300;
  DeviceJob other_parts = one_block;
  one_block.in_place = other_parts.in_place = true;
  other_parts.blocks = 2;
  DeviceJob marked{find_algorithm("one_shot", Collective::all_reduce), 3, DataType::int32, ReduceOp::sum, 90};
  marked.marked = marked.in_place = true;
  return {{{ring, two_blocks}},
          {{gather, two_shot}},
          {{lent_sum, lent_parts}},
          {{lent_in_place, gather}},
          {{marked}, {4, 4, 4}, kernels::kExchangesOfAge - 2},
          {{one_block, other_parts}, {4, 1, 3}}};
}

constexpr const char* kCountOfLaunch = "atom.acq_rel.gpu.global.add.u64";  // of blocks that have ended a program

// Eight ranks use each look at a word that the compiled kernel has: none is the own one on all ranks.
std::vector<Group> marked_groups() {
  DeviceJob sum{find_algorithm("one_shot", Collective::all_reduce), 8, DataType::int32, ReduceOp::sum, 70};
  DeviceJob gather{find_algorithm("direct", Collective::all_gather), 8, DataType::int32, ReduceOp::sum, 40};
  sum.marked = gather.marked = true;
  DeviceJob short_sum = sum;
  short_sum.count = 3;
  return {{{sum, gather, short_sum}, {}, 5}};
}

std::string last_fault;  // for people
bool one_slot = false;   // a mistake of marked messages that must show

enum class Outcome : std::uint8_t { right, wrong, race, hang };

Outcome outcome_of(const std::string& ptx, const Group& group, std::uint64_t seed) {
  const std::vector<DeviceJob>& jobs = group.jobs;
  const bool is_chain = !group.fused.empty();
  std::vector<MachineDevices::Call> calls;
  for (const DeviceJob& job : jobs) calls.push_back({job.programs(), job.cut()});
  const std::size_t ranks = calls.front().programs.size();
  std::vector<std::vector<std::byte>> residuals(ranks);
  std::vector<std::vector<DeviceMemory>> host(kOperations);
  for (std::uint64_t operation = 0; operation < kOperations; ++operation)
    for (std::size_t rank = 0; rank < ranks; ++rank)
      host[operation].emplace_back(jobs[operation % jobs.size()], static_cast<Rank>(rank), seed + operation);
  std::vector<std::vector<DeviceMemory>> device = host;
  for (std::uint64_t operation = 0; operation < kOperations; ++operation)
    if (!run_on_host(calls[operation % calls.size()].programs, host[is_chain ? 0 : operation], residuals).ok())
      return Outcome::wrong;
  try {
    MachineDevices({.ptx = ptx,
                    .kernel = kernel_name(calls.front().programs.front()),
                    .seed = seed,
                    .scribbles = jobs.front().lends,
                    .fused = group.fused,
                    .exchanges = group.exchanges,
                    .one_slot = one_slot},
                   calls)
        .run(device);
    for (std::uint64_t operation = 0; operation < kOperations; ++operation)
      for (std::size_t rank = 0; rank < ranks; ++rank)
        if (device[operation][rank].output != host[operation][rank].output) return Outcome::wrong;
  } catch (const software_gpu::Fault& fault) {
    last_fault = fault.what();
    if (fault.kind() == software_gpu::FaultKind::race) return Outcome::race;
    if (fault.kind() == software_gpu::FaultKind::hang) return Outcome::hang;
    // An address that came too late.
    if (fault.kind() == software_gpu::FaultKind::out_of_bounds || fault.kind() == software_gpu::FaultKind::misaligned)
      return Outcome::wrong;
    throw;
  }
  return Outcome::right;
}

// The first seed under which the kernel fails; 0: none.
std::uint64_t first_failure(const std::string& ptx, std::uint64_t seeds, const std::vector<Group>& groups) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const Group& group : groups)
      if (outcome_of(ptx, group, seed) != Outcome::right) return seed;
  return 0;
}

struct Change {
  std::string from;
  std::string to;
};

class KernelMutation : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_kernels()) GTEST_SKIP() << needs_kernels();
    ptx_ = kernel_ptx(groups().front().jobs.front().programs().front());
    ASSERT_NE(ptx_, "") << "the library has kernels, but not this one";
  }

  // Makes a mutant at each place where the instruction stands, one at a time. `mutated` makes it from the whole instruction.
  template <class Mutated>
  void expect_each_place_matters(const std::string& instruction, const Mutated& mutated) {
    int places = 0;
    for (std::size_t at = ptx_.find(instruction); at != std::string::npos; at = ptx_.find(instruction, at + 1)) {
      if (std::find(left_out_.begin(), left_out_.end(), at) != left_out_.end()) continue;
      ++places;
      const std::size_t size = ptx_.find(';', at) + 1 - at;
      const std::string before = ptx_.substr(at, size);
      std::string mutant = ptx_;
      mutant.replace(at, size, mutated(before));
      const auto begin = ptx_.begin();
      const auto line = std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n') + 1;
      EXPECT_NE(first_failure(mutant, kMostSeeds, groups_), 0U) << "line " << line << ": " << before << " -> " << mutated(before);
    }
    EXPECT_GT(places, 0) << instruction << " is not in the kernel";
    places_ += places;
  }
  void expect_each_place_matters(const Change& change) {
    expect_each_place_matters(change.from,
                              [&](const std::string& instruction) { return change.to + instruction.substr(change.from.size()); });
  }

  // Where blocks of one GPU wait for each other, the scope of the GPU is enough. The rules of the machine code (tests/sass) ask
  // for that of the system.
  void leave_out_wait_of_launch() {
    const std::size_t count = ptx_.find(kCountOfLaunch);
    ASSERT_NE(count, std::string::npos);
    const std::size_t address = ptx_.find('[', count);
    const std::string word = ptx_.substr(address, ptx_.find(']', count) + 1 - address);
    for (std::size_t at = ptx_.find("ld.acquire.sys"); at != std::string::npos; at = ptx_.find("ld.acquire.sys", at + 1))
      if (ptx_.substr(at, ptx_.find(';', at) - at).find(word) != std::string::npos) left_out_.push_back(at);
    ASSERT_FALSE(left_out_.empty());
  }

  std::string ptx_;
  std::vector<Group> groups_ = groups();
  std::vector<std::size_t> left_out_;  // places that stay as they are
  int places_ = 0;
};

TEST_F(KernelMutation, TheKernelIsRight) { EXPECT_EQ(first_failure(ptx_, 20, groups_), 0U) << last_fault; }

TEST_F(KernelMutation, EachWeakerFlagIsFound) {
  for (const Change& change : {Change{"st.release.sys.global.u64", "st.relaxed.sys.global.u64"},
                               {"st.release.sys.global.u64", "st.release.gpu.global.u64"},
                               {"st.release.sys.global.u64", "st.global.u64"},
                               {"ld.acquire.sys.global.u64", "ld.global.u64"},
                               {"atom.acq_rel.gpu.global.add", "atom.relaxed.gpu.global.add"},
                               {"atom.acq_rel.gpu.global.add", "atom.acq_rel.cta.global.add"}})
    expect_each_place_matters(change);
  leave_out_wait_of_launch();
  expect_each_place_matters(Change{"ld.acquire.sys.global.u64", "ld.acquire.gpu.global.u64"});
  // The first look comes a few instructions after the count. Under no seed does the last block come in between.
  left_out_.resize(1);
  expect_each_place_matters(Change{"ld.acquire.sys.global.u64", "ld.relaxed.sys.global.u64"});
  std::printf("%d places\n", places_);
}

// A marked word is one access, strong, and of the scope of the system.
TEST_F(KernelMutation, EachWeakerMarkIsFound) {
  groups_ = marked_groups();
  EXPECT_EQ(first_failure(ptx_, 20, groups_), 0U) << last_fault;
  const std::string store = "st.relaxed.sys.global.b64", load = "ld.relaxed.sys.global.b64";
  for (const Change& change : {Change{store, "st.relaxed.gpu.global.b64"},
                               {store, "st.global.b64"},
                               {load, "ld.relaxed.gpu.global.b64"},
                               {load, "ld.global.b64"}})
    expect_each_place_matters(change);
  const auto parts_of = [](const std::string& access) {
    const std::size_t open = access.find('['), close = access.find(']');
    const std::size_t value = access.find("%rd", access.starts_with("ld") ? 0 : close);
    return std::pair{access.substr(open + 1, close - open - 1), access.substr(value, access.find_first_of(",;", value) - value)};
  };
  const std::string halves = "{.reg .b32 %low, %high; ";
  expect_each_place_matters(store, [&](const std::string& access) {
    const auto [address, value] = parts_of(access);
    return halves + "mov.b64 {%low, %high}, " + value + "; st.relaxed.sys.global.b32 [" + address +
           "], %low; st.relaxed.sys.global.b32 [" + address + "+4], %high;}";
  });
  expect_each_place_matters(load, [&](const std::string& access) {
    const auto [address, value] = parts_of(access);
    return halves + "ld.relaxed.sys.global.b32 %low, [" + address + "]; ld.relaxed.sys.global.b32 %high, [" + address +
           "+4]; mov.b64 " + value + ", {%low, %high};}";
  });
  std::printf("%d places\n", places_);
}

// A word of the exchange after the next one is written over one that was not read.
TEST_F(KernelMutation, OneSlotForMarksIsNotEnough) {
  one_slot = true;
  const std::uint64_t seed = first_failure(ptx_, kMostSeeds, marked_groups());
  one_slot = false;
  std::printf("found under seed %d\n", static_cast<int>(seed));
  EXPECT_NE(seed, 0U);
}

// Every block takes itself for the last one that has ended a program, and begins the next one at once.
TEST_F(KernelMutation, AMissingOrderOfProgramsIsFound) {
  const std::size_t at = ptx_.find(kCountOfLaunch);
  ASSERT_NE(at, std::string::npos);
  const std::size_t size = ptx_.find(';', at) + 1 - at;
  const std::size_t result = ptx_.find('%', at);
  std::string mutant = ptx_;
  mutant.replace(at, size, "mov.u64 " + ptx_.substr(result, ptx_.find(',', at) - result) + ", 1;");
  int found = 0;
  for (std::uint64_t seed = 1; seed <= kMostSeeds; ++seed) found += outcome_of(mutant, groups().back(), seed) != Outcome::right;
  std::printf("found under %d of %d seeds\n", found, static_cast<int>(kMostSeeds));
  EXPECT_GT(found, 0);
}

// A barrier of the block becomes one of the warp; one that also joins a predicate joins that of the warp only. The two around the
// count of blocks stay: they order the flags of the last step before the word that the operation is done, and tell all warps to
// store it. A warp that is not the first stores such flags and words only in a call of more than 32 ranks.
TEST_F(KernelMutation, EachMissingBarrierIsFound) {
  const std::size_t count = ptx_.find("atom.acq_rel.gpu.global.add.u32");
  ASSERT_NE(count, std::string::npos);
  left_out_ = {ptx_.rfind("bar.", count), ptx_.find("bar.", count)};
  expect_each_place_matters("bar.sync", [](const std::string&) { return std::string("bar.warp.sync -1;"); });
  expect_each_place_matters("bar.red.or.pred", [](const std::string& barrier) {
    const std::string result = barrier.substr(barrier.find('%'), barrier.find(',') - barrier.find('%'));
    const std::string operand = barrier.substr(barrier.rfind('%'), barrier.find(';') - barrier.rfind('%'));
    return "vote.sync.any.pred " + result + ", " + operand + ", -1; bar.warp.sync -1;";
  });
  std::printf("%d places\n", places_);
}

}  // namespace
}  // namespace seto::support
