#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_gpu/address_map.h"
#include "tests/software_gpu/block.h"
#include "tests/software_gpu/launch.h"
#include "tests/software_gpu/memory_model.h"
#include "tests/software_gpu/multiprocessor.h"
#include "tests/software_gpu/race_check.h"
#include "tests/software_gpu/random.h"

namespace seto::software_gpu {

struct MachineSettings {
  std::uint32_t gpus = 1;
  std::uint32_t multiprocessors = 4;  // of each GPU
  MultiprocessorLimits limits{};
  bool weak = false;  // memory; also: lanes and late blocks are chosen by the seed, else they take turns
  std::uint64_t seed = 1;
  std::uint64_t step_budget = 200'000'000;  // instructions of all threads between two ends of a kernel; more is a hang
  bool detect_races = true;                 // of accesses of shared memory
  bool detect_global_races = true;          // likewise of global memory; needs all threads that take part to be of this machine
};

// GPUs that share an address space, as peers of one node do. One host thread runs all of their lanes.
class Machine final {
 public:
  explicit Machine(const MachineSettings& settings);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] const MachineSettings& settings() const { return settings_; }
  [[nodiscard]] MemoryModel& memory() { return memory_; }
  [[nodiscard]] RaceCheck& races() { return races_; }
  [[nodiscard]] AddressMap& addresses() { return addresses_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }  // instructions executed so far; also the clock of kernels
  [[nodiscard]] const std::list<Launch>& launches() const { return launches_; }
  [[nodiscard]] std::uint32_t launched() const { return next_launch_ - 1; }  // kernels so far
  [[nodiscard]] const std::vector<std::unique_ptr<Block>>& residents() const { return residents_; }

  // Memory of a GPU, filled with a pattern, until the machine ends.
  std::uint64_t allocate(std::uint32_t gpu, std::uint64_t bytes, const std::string& name);
  const Program& load(std::uint32_t gpu, std::string_view ptx);

  // Kernels that were launched run at the same time, as far as slots allow.
  void launch(LaunchRequest request);
  [[nodiscard]] bool idle() const { return launches_.empty(); }
  // Runs until all kernels have ended. Throws a Fault; after one the kernels are gone.
  void run();
  // Gives `turns` warps a turn, for a caller that has other things to do in between.
  void run_some(std::uint32_t turns);

 private:
  struct Gpu {
    MemoryView memory;
    std::vector<Multiprocessor> multiprocessors;
  };

  void turn();
  void start_blocks();
  bool start_block(Launch& launch);
  void send_to_sleep();
  Block* choose_block(std::uint64_t now);
  Warp& choose_warp(Block& block);
  void run_warp(Warp& warp);
  void end_block(Block& block);
  void abandon();

  MachineSettings settings_;
  Random random_;
  MemoryModel memory_;
  RaceCheck races_;
  AddressMap addresses_;
  std::deque<Gpu> gpus_;
  std::deque<std::vector<std::uint64_t>> storage_;
  std::deque<Program> programs_;
  std::list<Launch> launches_;
  std::vector<std::unique_ptr<Block>> residents_;
  std::uint64_t steps_ = 0;
  std::uint64_t deadline_ = 0;  // in steps
  std::uint64_t waiting_blocks_ = 0;
  std::uint32_t next_launch_ = 1, next_block_ = 1;
  std::size_t next_resident_ = 0;
};

// Says what each kernel, block and warp waits for.
[[nodiscard]] std::string hang_report(const Machine& machine);

}  // namespace seto::software_gpu
