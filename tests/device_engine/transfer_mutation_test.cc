// The compiled kernel of sends and receives on the software GPU, in weak memory and with its race check; and with weaker flags
// and missing barriers, which must be found within 200 seeds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "src/engine/device/device_transfers.h"
#include "src/engine/kernels/kernel_images.h"
#include "tests/device_engine/kernel_text.h"
#include "tests/software_gpu/driver/fatbin.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

using Direction = LocalTransfer::Direction;

constexpr std::uint64_t kMostSeeds = 200;
constexpr std::size_t kRanks = 2;
constexpr std::size_t kRanksOfArea = 400;  // so many have the shortest slots, which messages of few bytes use again and again
constexpr std::size_t kLaunches = 3;
// Bytes that rank 0 sends to rank 1 in each launch, in two messages, and rank 1 to rank 0.
constexpr std::uint64_t kSizes[kRanks][2] = {{1300, 4}, {700, 520}};

std::string transfers_ptx() {
  for (const cuda::KernelImage& image : kernels::kernel_images().images)
    if (std::string(image.name) == "transfers") return software_gpu::driver::ptx_of_image(image.data, kCapability);
  return {};
}

std::byte content(std::size_t sender, std::size_t launch, std::size_t message, std::uint64_t at) {
  return static_cast<std::byte>(at * 7 + sender * 101 + launch * 37 + message * 13 + at / 256);
}

// Two GPUs, whose ranks send messages to each other in several launches.
class Exchange {
 public:
  Exchange(const std::string& ptx, std::uint64_t seed, std::uint32_t blocks)
      : machine_({.gpus = kRanks, .multiprocessors = 2, .weak = true, .seed = seed, .step_budget = 20'000'000}),
        program_(&machine_.load(0, ptx)),
        area_(TransferArea::of(kRanksOfArea, 0).value()),
        addresses_(kRanksOfArea) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) addresses_[rank] = allocate(rank, TransferArea::kSize, "workspace");
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      stops_[rank] = allocate(rank, sizeof(std::uint64_t), "stop word");
      reports_[rank] = allocate(rank, area_.lanes() * sizeof(kernels::TransferReport), "reports");
      for (std::size_t launch = 0; launch < kLaunches; ++launch) prepare(rank, launch, blocks);
    }
  }

  // False: bytes that arrived are wrong. Throws the machine's Fault.
  bool run() {
    std::size_t launched[kRanks] = {};
    do {
      for (std::size_t rank = 0; rank < kRanks; ++rank)
        if (launched[rank] < kLaunches && !is_running(rank)) launch(rank, launched[rank]++);
      machine_.run_some(16);
    } while (!machine_.idle() || std::min(launched[0], launched[1]) < kLaunches);
    return std::all_of(received_.begin(), received_.end(), [](const Received& one) {
      for (std::uint64_t i = 0; i < one.size; ++i)
        if (reinterpret_cast<const std::byte*>(one.memory)[i] != content(one.sender, one.launch, one.message, i)) return false;
      return true;
    });
  }

 private:
  struct Received {
    std::uint64_t memory, size;
    std::size_t sender, launch, message;
  };

  std::uint64_t allocate(std::size_t rank, std::size_t size, const char* name) {
    const std::uint64_t address = machine_.allocate(static_cast<std::uint32_t>(rank), size, name);
    std::memset(reinterpret_cast<void*>(address), 0, size);
    return address;
  }

  void prepare(std::size_t rank, std::size_t launch, std::uint32_t blocks) {
    std::vector<DeviceTransfer> messages;
    for (const std::size_t sender : {rank, 1 - rank})
      for (std::size_t message = 0; message < 2; ++message) {
        const std::uint64_t size = kSizes[sender][message];
        const std::uint64_t memory = allocate(rank, size, sender == rank ? "sent" : "received");
        if (sender == rank)
          for (std::uint64_t i = 0; i < size; ++i) reinterpret_cast<std::byte*>(memory)[i] = content(rank, launch, message, i);
        else
          received_.push_back({memory, size, sender, launch, message});
        messages.push_back(
            {{sender == rank ? Direction::send : Direction::receive, static_cast<Rank>(1 - rank)}, {memory, size, message, 0}});
      }
    const std::vector<std::byte> program = transfer_program(area_, rank, addresses_, {messages, {}, blocks});
    programs_[rank].push_back(allocate(rank, program.size(), "program"));
    std::memcpy(reinterpret_cast<void*>(programs_[rank].back()), program.data(), program.size());
    kernels::TransferProgram begin;
    std::memcpy(&begin, program.data(), sizeof begin);
    blocks_ = begin.blocks;
  }

  void launch(std::size_t rank, std::size_t number) {
    const kernels::TransferArguments arguments{programs_[rank][number], reports_[rank], stops_[rank], number + 1, 0};
    machine_.launch({.program = program_,
                     .kernel = "seto_run_transfers",
                     .gpu = static_cast<std::uint32_t>(rank),
                     .grid = {blocks_},
                     .block = {64},
                     .arguments = software_gpu::arguments_of(arguments)});
  }

  [[nodiscard]] bool is_running(std::size_t rank) const {
    return std::any_of(machine_.launches().begin(), machine_.launches().end(),
                       [&](const software_gpu::Launch& one) { return one.request.gpu == rank; });
  }

  software_gpu::Machine machine_;
  const software_gpu::Program* program_;
  TransferArea area_;
  std::vector<kernels::Address> addresses_;
  std::uint64_t stops_[kRanks] = {}, reports_[kRanks] = {};
  std::vector<std::uint64_t> programs_[kRanks];
  std::vector<Received> received_;
  std::uint32_t blocks_ = 1;
};

bool is_right(const std::string& ptx, std::uint64_t seed, std::uint32_t blocks) {
  try {
    return Exchange(ptx, seed, blocks).run();
  } catch (const software_gpu::Fault& fault) {
    using software_gpu::FaultKind;
    if (fault.kind() == FaultKind::race || fault.kind() == FaultKind::hang || fault.kind() == FaultKind::out_of_bounds)
      return false;
    throw;
  }
}

// The first seed under which the kernel fails; 0: none.
std::uint64_t first_failure(const std::string& ptx, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    if (!is_right(ptx, seed, 1 + seed % 2)) return seed;
  return 0;
}

class TransferKernelMutation : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_kernels()) GTEST_SKIP() << needs_kernels();
    ptx_ = transfers_ptx();
    ASSERT_NE(ptx_, "") << "the library has kernels, but not this one";
  }
  [[nodiscard]] std::string with_all(const std::string& from, const std::string& to) const {
    std::string changed = ptx_;
    for (std::size_t at = changed.find(from); at != std::string::npos; at = changed.find(from, at + to.size()))
      changed.replace(at, from.size(), to);
    return changed;
  }

  std::string ptx_;
};

TEST_F(TransferKernelMutation, TheKernelIsRight) { EXPECT_EQ(first_failure(ptx_, 40), 0U); }

// At all places at once: reports to the host use the same instructions, and these tests do not read them.
TEST_F(TransferKernelMutation, WeakerFlagsAreFound) {
  for (const auto& [from, to] : std::map<std::string, std::vector<std::string>>{
           {"st.release.sys.global.u64", {"st.relaxed.sys.global.u64", "st.release.gpu.global.u64", "st.global.u64"}},
           {"ld.acquire.sys.global.u64", {"ld.relaxed.sys.global.u64", "ld.acquire.gpu.global.u64", "ld.global.u64"}}})
    for (const std::string& weaker : to) {
      const std::string mutant = with_all(from, weaker);
      EXPECT_NE(mutant, ptx_) << from << " is not in the kernel";
      EXPECT_NE(first_failure(mutant, kMostSeeds), 0U) << from << " -> " << weaker;
    }
}

// One acquire at a time: of what has come, and of the credit.
TEST_F(TransferKernelMutation, EachWeakerLoadIsFound) {
  const std::string from = "ld.acquire.sys.global.u64", to = "ld.relaxed.sys.global.u64";
  int places = 0;
  for (std::size_t at = ptx_.find(from); at != std::string::npos; at = ptx_.find(from, at + 1), ++places) {
    std::string mutant = ptx_;
    mutant.replace(at, from.size(), to);
    EXPECT_NE(first_failure(mutant, kMostSeeds), 0U) << "place " << places;
  }
  EXPECT_GE(places, 2);
}

// A barrier of the block becomes one of the warp.
TEST_F(TransferKernelMutation, EachMissingBarrierIsFound) {
  int places = 0;
  for (std::size_t at = ptx_.find("bar.sync"); at != std::string::npos; at = ptx_.find("bar.sync", at + 1), ++places) {
    std::string mutant = ptx_;
    mutant.replace(at, ptx_.find(';', at) + 1 - at, "bar.warp.sync -1;");
    EXPECT_NE(first_failure(mutant, kMostSeeds), 0U) << "place " << places;
  }
  EXPECT_GE(places, 2);
}

}  // namespace
}  // namespace seto::support
