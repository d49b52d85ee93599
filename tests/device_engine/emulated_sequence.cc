#include "tests/device_engine/emulated_sequence.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "tests/device_engine/emulated_devices.h"

namespace seto::support {
namespace {

kernels::Address address_of(const void* pointer) { return reinterpret_cast<kernels::Address>(pointer); }

}  // namespace

Result<EmulatedSequence> EmulatedSequence::create(const std::vector<DeviceJob>& jobs) {
  EmulatedSequence made(jobs.front().type, static_cast<std::size_t>(jobs.front().ranks));
  std::vector<std::vector<BoundProgram>> programs;
  std::vector<DeviceChannels> channels;
  for (const DeviceJob& job : jobs) {
    programs.push_back(job.programs());
    SETO_ASSIGN(channels.emplace_back(), DeviceChannels::join(programs.back(), job.cut()));
  }
  std::vector<kernels::Address> workspaces;
  for (std::size_t rank = 0; rank < made.ranks_.size(); ++rank) {
    RankState& state = made.ranks_[rank];
    std::size_t workspace = 0, scratch = 0;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      workspace = std::max(workspace, channels[job].workspace_size(rank));
      scratch = std::max(scratch, programs[job][rank].scratch_size);
    }
    state.workspace.resize(workspace / sizeof(std::uint64_t));
    state.scratch.resize(scratch);
    workspaces.push_back(address_of(state.workspace.data()));
  }
  for (std::size_t rank = 0; rank < made.ranks_.size(); ++rank)
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      SETO_ASSIGN(made.ranks_[rank].programs.emplace_back(),
                  lower_to_device(programs[job][rank], jobs[job].cut(), channels[job].ends_of(rank, workspaces)));
    }
  return made;
}

void EmulatedSequence::set_exchanges(std::uint64_t exchanges) {
  for (RankState& rank : ranks_) reinterpret_cast<kernels::WorkspaceBegin*>(rank.workspace.data())->exchanges = exchanges;
}

kernels::LaunchArguments EmulatedSequence::arguments_of(std::size_t rank, std::size_t job, DeviceMemory& memory,
                                                        std::uint32_t& stop) {
  RankState& state = ranks_[rank];
  kernels::LaunchArguments launch;
  launch.progress = address_of(&state.progress);
  kernels::DeviceArguments& arguments = launch.programs[0];
  arguments.program = address_of(state.programs[job].data());
  arguments.input = address_of(memory.input_data());
  arguments.output = address_of(memory.output_data());
  arguments.scratch = address_of(state.scratch.data());
  arguments.scalar = address_of(memory.scalar.data());
  arguments.workspace = address_of(state.workspace.data());
  arguments.reports = address_of(state.reports.data());
  arguments.stop = address_of(&stop);
  return launch;
}

bool EmulatedSequence::run_until_it_waits(std::size_t rank, std::size_t job, DeviceMemory& memory, std::uint32_t times) {
  std::uint32_t stop = kernels::kStop | kernels::kStopAtOnce;
  kernels::LaunchArguments launch = arguments_of(rank, job, memory, stop);
  launch.count = times;
  std::fill_n(launch.programs, times, kernels::DeviceArguments(launch.programs[0]));
  run_emulated_block(type_, false, launch, 0);
  return std::exchange(ranks_[rank].reports[0], 0) == 0;
}

std::vector<std::uint64_t> EmulatedSequence::marked_words(std::size_t rank) const {
  const auto begin = ranks_[rank].workspace.begin() + kernels::kMarkedPlace / sizeof(std::uint64_t);
  return {begin, begin + kernels::kMarkedArea / sizeof(std::uint64_t)};
}

Status EmulatedSequence::run(std::vector<std::vector<DeviceMemory>>& operations, std::uint64_t timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  std::uint32_t stop = 0;
  std::vector<std::future<void>> running;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    running.push_back(std::async(std::launch::async, [&, rank] {
      for (std::size_t operation = 0; operation < operations.size(); ++operation) {
        const std::size_t job = operation % ranks_[rank].programs.size();
        run_emulated_block(type_, false, arguments_of(rank, job, operations[operation][rank], stop), 0);
        if (ranks_[rank].reports[0] != 0) return;
      }
    }));
  for (const std::future<void>& one : running)
    if (one.wait_until(until) != std::future_status::ready)
      std::atomic_ref(stop).store(kernels::kStop | kernels::kStopAtOnce, std::memory_order_relaxed);
  for (std::future<void>& one : running) one.get();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) SETO_TRY(stop_failure(rank, ranks_[rank].reports, timeout_ms));
  return {};
}

}  // namespace seto::support
