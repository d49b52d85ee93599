#include "tests/device_engine/emulated_devices.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/base/check.h"
#include "src/engine/kernels/entries.h"

namespace seto::support {
namespace {

using kernels::Address;
using kernels::Encoding;
using kernels::LaunchArguments;

template <DataType kType, Encoding kEncoding>
void run_with(const LaunchArguments& launch, std::uint32_t block) {
  kernels::BlockMemory memory;
  kernels::CurrentProgram current;
  kernels::BlockPrograms<kernels::Number<kType>, kEncoding>(launch, memory, current, block).run();
}

template <DataType kType>
void run_plain(const LaunchArguments& launch, std::uint32_t block) {
  run_with<kType, Encoding::none>(launch, block);
}

void run_coded_block(DataType type, const LaunchArguments& launch, std::uint32_t block) {
  switch (type) {
    case DataType::float32:
      return run_with<DataType::float32, Encoding::some>(launch, block);
    case DataType::float64:
      return run_with<DataType::float64, Encoding::some>(launch, block);
    default:
      return run_with<DataType::bfloat16, Encoding::some>(launch, block);
  }
}

void run_plain_block(DataType type, const LaunchArguments& launch, std::uint32_t block) {
  switch (type) {
    case DataType::int8:
      return run_plain<DataType::int8>(launch, block);
    case DataType::uint8:
      return run_plain<DataType::uint8>(launch, block);
    case DataType::int32:
      return run_plain<DataType::int32>(launch, block);
    case DataType::uint32:
      return run_plain<DataType::uint32>(launch, block);
    case DataType::int64:
      return run_plain<DataType::int64>(launch, block);
    case DataType::uint64:
      return run_plain<DataType::uint64>(launch, block);
    case DataType::float16:
      return run_plain<DataType::float16>(launch, block);
    case DataType::float32:
      return run_plain<DataType::float32>(launch, block);
    case DataType::float64:
      return run_plain<DataType::float64>(launch, block);
    case DataType::bfloat16:
      return run_plain<DataType::bfloat16>(launch, block);
    case DataType::float8e4m3:
      return run_plain<DataType::float8e4m3>(launch, block);
    case DataType::float8e5m2:
      return run_plain<DataType::float8e5m2>(launch, block);
  }
}

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

constexpr std::uint64_t kPassesMs = 20;  // for passes that have begun to end

// A caller may write to its input as soon as the kernel of its own rank has ended, when other ranks may still run.
void scribble(std::vector<std::byte>& input) {
  for (std::byte& byte : input) byte = ~byte;
}

// Counts the blocks that are done, and wakes the thread that waits for all of them.
class Countdown {
 public:
  explicit Countdown(std::size_t count) : left_(count) {}
  void done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) changed_.notify_one();
  }
  // False: it took longer.
  bool wait_ms(std::uint64_t timeout_ms) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_;
};

}  // namespace

void run_emulated_block(DataType type, bool coded, const LaunchArguments& launch, std::uint32_t block) {
  (coded ? run_coded_block : run_plain_block)(type, launch, block);
}

Result<std::unique_ptr<EmulatedDevices>> EmulatedDevices::create(const std::vector<BoundProgram>& programs, const DeviceCut& cut,
                                                                 const RelayedPairs& relayed, std::uint64_t gpu_seed) {
  std::unique_ptr<EmulatedDevices> made(new EmulatedDevices(programs.front(), cut));
  SETO_ASSIGN(const DeviceChannels channels, DeviceChannels::join(programs, cut, relayed));
  if (relayed.any()) {
    SETO_ASSIGN(made->relay_, RelayedHosts::create(programs, cut, channels, gpu_seed));
  }
  made->ranks_.resize(programs.size());
  made->launched_ = programs.size();
  std::vector<Address> workspaces;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    RankState& state = made->ranks_[rank];
    state.workspace.resize(channels.workspace_size(rank) / sizeof(std::uint64_t));
    state.scratch.resize(programs[rank].scratch_size);
    state.reports.resize(cut.blocks);
    workspaces.push_back(address_of(state.workspace.data()));
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    DeviceEnds ends = channels.ends_of(rank, workspaces, made->relay_ ? made->relay_->staging(rank) : 0);
    if (made->relay_) made->relay_->put_in_gpu(rank, ends);
    SETO_ASSIGN(made->ranks_[rank].program, lower_to_device(programs[rank], cut, ends));
  }
  return made;
}

LaunchArguments EmulatedDevices::arguments_of(std::size_t rank, DeviceMemory& memory, std::vector<std::byte>& residual) {
  RankState& state = ranks_[rank];
  LaunchArguments launch;
  launch.count = times_;
  launch.blocks = cut_.blocks;
  launch.progress = address_of(&state.progress);
  kernels::DeviceArguments& arguments = launch.programs[0];
  arguments.program = address_of(state.program.data());
  arguments.input = address_of(memory.input_data());
  arguments.output = address_of(memory.output_data());
  arguments.scratch = address_of(state.scratch.data());
  arguments.scalar = address_of(memory.scalar.data());
  arguments.residual = residual.empty() ? 0 : address_of(residual.data());
  arguments.workspace = address_of(state.workspace.data());
  arguments.reports = address_of(state.reports.data());
  arguments.stop = address_of(&stop_);
  std::fill_n(launch.programs, times_, arguments);
  return launch;
}

Status EmulatedDevices::run(std::vector<DeviceMemory>& memory, std::vector<std::vector<std::byte>>& residuals,
                            std::uint64_t timeout_ms) {
  std::vector<LaunchArguments> arguments;
  for (std::size_t rank = 0; rank < launched_; ++rank) arguments.push_back(arguments_of(rank, memory[rank], residuals[rank]));
  Countdown running(launched_ * cut_.blocks);
  std::vector<std::atomic<std::uint32_t>> left(launched_);
  for (std::atomic<std::uint32_t>& blocks : left) blocks = cut_.blocks;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < launched_; ++rank)
    for (std::uint32_t block = 0; block < cut_.blocks; ++block)
      threads.emplace_back([&, rank, block] {
        run_emulated_block(type_, coded_, arguments[rank], block);
        if (left[rank].fetch_sub(1) == 1) scribble(memory[rank].input);
        running.done();
      });
  if (relay_ != nullptr) threads.emplace_back([&] { relay_->serve(stop_); });
  if (!running.wait_ms(timeout_ms)) {
    std::atomic_ref(stop_).store(kernels::kStop, std::memory_order_relaxed);
    (void)running.wait_ms(kPassesMs);
    std::atomic_ref(stop_).store(kernels::kStopAtOnce, std::memory_order_relaxed);
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t rank = 0; rank < launched_; ++rank) scribble(memory[rank].input);  // back
  for (std::size_t rank = 0; rank < launched_; ++rank) SETO_TRY(stop_failure(rank, ranks_[rank].reports, timeout_ms));
  return {};
}

}  // namespace seto::support
