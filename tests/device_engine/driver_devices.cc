#include "tests/device_engine/driver_devices.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "src/base/clock.h"
#include "src/engine/kernels/device_launch.h"

namespace seto::support {
namespace {

using kernels::DeviceArguments;

}  // namespace

Result<std::unique_ptr<DriverDevices>> DriverDevices::create(const Setup& setup, const std::vector<BoundProgram>& programs,
                                                             const DeviceCut& cut) {
  std::unique_ptr<DriverDevices> made(new DriverDevices(setup, cut));
  SETO_ASSIGN(const DeviceChannels channels, DeviceChannels::join(programs, cut));
  std::vector<kernels::Address> workspaces;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    SETO_TRY(made->add_rank(programs[rank], channels.workspace_size(rank)));
    workspaces.push_back(made->ranks_[rank].workspace);
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    SETO_ASSIGN(const std::vector<std::byte> program, lower_to_device(programs[rank], cut, channels.ends_of(rank, workspaces)));
    SETO_TRY(made->load_program(rank, program));
  }
  made->launched_ = programs.size();
  return made;
}

DriverDevices::~DriverDevices() {
  for (RankState& rank : ranks_) {
    if (!driver_.ctx_set_current(rank.context).ok()) continue;
    for (const cuda::DevicePointer pointer : rank.allocations) (void)driver_.mem_free(pointer);
    if (rank.words != nullptr) (void)driver_.mem_free_host(rank.words);
    if (rank.stream != nullptr) (void)driver_.stream_destroy(rank.stream);
  }
}

Result<cuda::DevicePointer> DriverDevices::allocate(RankState& rank, std::size_t size) {
  cuda::DevicePointer pointer = 0;
  if (size == 0) return pointer;
  SETO_TRY(driver_.mem_alloc(&pointer, size));
  rank.allocations.push_back(pointer);
  return pointer;
}

Status DriverDevices::add_rank(const BoundProgram& program, std::size_t workspace_size) {
  const int gpu = static_cast<int>(ranks_.size()) % setup_.gpus;
  RankState& rank = ranks_.emplace_back();
  SETO_TRY(driver_.device_primary_ctx_retain(&rank.context, gpu));
  SETO_TRY(driver_.ctx_set_current(rank.context));
  if (static_cast<int>(ranks_.size()) <= setup_.gpus) {
    for (int other = 0; other < setup_.gpus; ++other) {
      cuda::Context peer = nullptr;
      if (other == gpu) continue;
      SETO_TRY(driver_.device_primary_ctx_retain(&peer, other));
      const cuda::DriverCode code = driver_.ctx_enable_peer_access.code(peer, 0);
      if (code != cuda::DriverCode::success && code != cuda::DriverCode::peer_access_already_enabled)
        return driver_.ctx_enable_peer_access.failed(code);
    }
  }
  SETO_TRY(driver_.stream_create_with_priority(&rank.stream, cuda::kStreamNonBlocking, 0));
  SETO_ASSIGN(rank.kernel, setup_.kernel(gpu));
  SETO_ASSIGN(rank.workspace, allocate(rank, workspace_size));
  SETO_TRY(driver_.memset_d8_async(rank.workspace, 0, workspace_size, rank.stream));
  SETO_ASSIGN(rank.scratch, allocate(rank, program.scratch_size));
  void* words = nullptr;
  const std::size_t count = cut_.blocks + 1;
  SETO_TRY(driver_.mem_host_alloc(&words, count * sizeof(std::uint64_t), cuda::kHostAllocPortable));
  rank.words = static_cast<std::uint64_t*>(words);
  std::fill_n(rank.words, count, 0U);
  return driver_.stream_synchronize(rank.stream);
}

Status DriverDevices::load_program(std::size_t rank, const std::vector<std::byte>& program) {
  RankState& state = ranks_[rank];
  SETO_TRY(driver_.ctx_set_current(state.context));
  SETO_ASSIGN(state.program, allocate(state, program.size()));
  SETO_TRY(driver_.memcpy_htod_async(state.program, program.data(), program.size(), state.stream));
  return driver_.stream_synchronize(state.stream);
}

Status DriverDevices::copy_in(std::size_t rank, const DeviceMemory& memory, const std::vector<std::byte>& residual,
                              Copies& copies) {
  RankState& state = ranks_[rank];
  SETO_TRY(driver_.ctx_set_current(state.context));
  const auto copy = [&](const std::vector<std::byte>& bytes, cuda::DevicePointer& pointer) -> Status {
    if (bytes.empty()) return {};
    SETO_TRY(driver_.mem_alloc(&pointer, bytes.size()));
    return driver_.memcpy_htod_async(pointer, bytes.data(), bytes.size(), state.stream);
  };
  SETO_TRY(copy(memory.input, copies.input));
  SETO_TRY(copy(memory.output, copies.output));
  SETO_TRY(copy(memory.scalar, copies.scalar));
  SETO_TRY(copy(residual, copies.residual));
  return driver_.stream_synchronize(state.stream);
}

Status DriverDevices::launch(std::size_t rank, const DeviceMemory& memory, const Copies& copies) {
  RankState& state = ranks_[rank];
  SETO_TRY(driver_.ctx_set_current(state.context));
  kernels::LaunchArguments launch;
  launch.blocks = cut_.blocks;
  DeviceArguments& arguments = launch.programs[0];
  arguments.program = state.program;
  arguments.input = memory.input.empty() ? copies.output + memory.input_offset : copies.input;
  arguments.output = copies.output + memory.output_offset;
  arguments.scratch = state.scratch;
  arguments.scalar = copies.scalar;
  arguments.residual = copies.residual;
  arguments.workspace = state.workspace;
  arguments.reports = reinterpret_cast<kernels::Address>(state.words);
  arguments.stop = reinterpret_cast<kernels::Address>(state.words + cut_.blocks);
  void* values[] = {&launch};
  return driver_.launch_kernel(state.kernel, cut_.blocks, 1, 1, setup_.threads, 1, 1, 0, state.stream, values, nullptr);
}

// Stops all kernels when the time is over, and then still waits for their end.
Status DriverDevices::wait_for_all(std::uint64_t timeout_ms) {
  const Deadline deadline = Deadline::after_ms(timeout_ms);
  for (std::size_t rank = 0; rank < launched_; ++rank) {
    SETO_TRY(driver_.ctx_set_current(ranks_[rank].context));
    for (;;) {
      const cuda::DriverCode code = driver_.stream_query.code(ranks_[rank].stream);
      if (code == cuda::DriverCode::success) break;
      if (code != cuda::DriverCode::not_ready) return driver_.stream_query.failed(code);
      if (!deadline.passed()) {
        std::this_thread::yield();  // to a software GPU
        continue;
      }
      for (const std::uint32_t value : {kernels::kStop, kernels::kStopAtOnce})
        for (RankState& other : ranks_)
          std::atomic_ref(*reinterpret_cast<std::uint32_t*>(other.words + cut_.blocks)).store(value, std::memory_order_relaxed);
      SETO_TRY(driver_.stream_synchronize(ranks_[rank].stream));
    }
  }
  return stopped_blocks(timeout_ms);
}

Status DriverDevices::stopped_blocks(std::uint64_t timeout_ms) const {
  for (std::size_t rank = 0; rank < launched_; ++rank)
    SETO_TRY(stop_failure(rank, {ranks_[rank].words, cut_.blocks}, timeout_ms));  // its kernel has ended
  return {};
}

Status DriverDevices::copy_out(std::size_t rank, DeviceMemory& memory, std::vector<std::byte>& residual, const Copies& copies) {
  RankState& state = ranks_[rank];
  SETO_TRY(driver_.ctx_set_current(state.context));
  const auto copy = [&](std::vector<std::byte>& bytes, cuda::DevicePointer pointer) -> Status {
    if (pointer == 0) return {};
    SETO_TRY(driver_.memcpy_dtoh_async(bytes.data(), pointer, bytes.size(), state.stream));
    SETO_TRY(driver_.stream_synchronize(state.stream));
    return driver_.mem_free(pointer);
  };
  std::vector<std::byte> scalar(memory.scalar.size());
  SETO_TRY(copy(memory.input, copies.input));
  SETO_TRY(copy(memory.output, copies.output));
  SETO_TRY(copy(scalar, copies.scalar));
  return copy(residual, copies.residual);
}

Status DriverDevices::run(std::vector<DeviceMemory>& memory, std::vector<std::vector<std::byte>>& residuals,
                          std::uint64_t timeout_ms) {
  std::vector<Copies> copies(ranks_.size());
  for (std::size_t rank = 0; rank < launched_; ++rank) SETO_TRY(copy_in(rank, memory[rank], residuals[rank], copies[rank]));
  for (std::size_t rank = 0; rank < launched_; ++rank) SETO_TRY(launch(rank, memory[rank], copies[rank]));
  SETO_TRY(wait_for_all(timeout_ms));
  for (std::size_t rank = 0; rank < launched_; ++rank) SETO_TRY(copy_out(rank, memory[rank], residuals[rank], copies[rank]));
  return {};
}

}  // namespace seto::support
