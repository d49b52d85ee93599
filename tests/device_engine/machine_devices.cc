#include "tests/device_engine/machine_devices.h"

#include <algorithm>
#include <cstring>

#include "src/base/check.h"
#include "src/engine/kernels/device_launch.h"

namespace seto::support {
namespace {

void copy_to(std::uint64_t address, const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
}

void copy_from(std::uint64_t address, std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(bytes.data(), reinterpret_cast<const void*>(address), bytes.size());
}

// Inverts words.
constexpr const char* kScribble = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry scribble(.param .u64 at, .param .u32 words)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [at];
  ld.param.u32 %r1, [words];
  mov.u32 %r2, %tid.x;
  mov.u32 %r4, %ntid.x;
AGAIN:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  not.b32 %r3, %r3;
  st.global.u32 [%rd3], %r3;
  add.s32 %r2, %r2, %r4;
  bra AGAIN;
DONE:
  ret;
}
)";

}  // namespace

MachineDevices::MachineDevices(const Setup& setup, const std::vector<Call>& calls)
    : setup_(setup),
      machine_({.gpus = static_cast<std::uint32_t>(calls.front().programs.size()),
                .multiprocessors = 2,
                .weak = setup.weak,
                .seed = setup.seed,
                .step_budget = setup.step_budget}),
      ranks_(calls.front().programs.size()) {
  program_ = &machine_.load(0, setup.ptx);
  scribbling_ = &machine_.load(0, kScribble);
  std::vector<DeviceChannels> channels;
  std::uint32_t most_blocks = 0;
  for (const Call& call : calls) {
    Result<DeviceChannels> joined = DeviceChannels::join(call.programs, call.cut);
    SETO_CHECK(joined.ok());
    channels.push_back(std::move(joined).value());
    blocks_.push_back(call.cut.blocks);
    most_blocks = std::max(most_blocks, call.cut.blocks);
  }
  std::vector<kernels::Address> workspaces;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankState& state = ranks_[rank];
    std::size_t workspace = 0;
    std::size_t scratch = 0;
    for (std::size_t call = 0; call < calls.size(); ++call) {
      workspace = std::max(workspace, channels[call].workspace_size(rank));
      scratch = std::max(scratch, calls[call].programs[rank].scratch_size);
    }
    state.workspace = allocate(rank, workspace, "workspace");
    state.scratch = allocate(rank, scratch, "scratch");
    state.reports = allocate(rank, most_blocks * sizeof(std::uint64_t), "reports");
    state.stop = allocate(rank, sizeof(std::uint64_t), "stop word");
    state.progress = allocate(rank, sizeof(std::uint64_t), "progress word");
    reinterpret_cast<kernels::WorkspaceBegin*>(state.workspace)->exchanges = setup.exchanges;
    workspaces.push_back(state.workspace);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    for (std::size_t call = 0; call < calls.size(); ++call) {
      DeviceEnds ends = channels[call].ends_of(rank, workspaces);
      for (std::vector<kernels::ChannelEnd>& stream : ends.streams)
        for (kernels::ChannelEnd& end : stream)
          if (setup.one_slot) end.depth = 1;
      Result<std::vector<std::byte>> lowered = lower_to_device(calls[call].programs[rank], calls[call].cut, ends);
      SETO_CHECK(lowered.ok());
      ranks_[rank].device_programs.push_back(allocate(rank, lowered.value().size(), "program"));
      copy_to(ranks_[rank].device_programs.back(), lowered.value());
    }
}

std::uint64_t MachineDevices::allocate(std::size_t rank, std::size_t size, const char* name) {
  if (size == 0) return 0;
  const std::uint64_t address = machine_.allocate(static_cast<std::uint32_t>(rank), size, name);
  std::memset(reinterpret_cast<void*>(address), 0, size);
  return address;
}

MachineDevices::Copies MachineDevices::copies_of(std::size_t rank, const DeviceMemory& memory) {
  const auto copy = [&](const std::vector<std::byte>& bytes, const char* name) {
    const std::uint64_t address = allocate(rank, bytes.size(), name);
    copy_to(address, bytes);
    if (address != 0) buffers_.push_back(address);
    return address;
  };
  return {copy(memory.input, "input"), copy(memory.output, "output"), copy(memory.scalar, "scalar")};
}

void MachineDevices::launch(std::size_t rank, std::size_t operation, std::size_t count, const DeviceMemory& memory,
                            const Copies& copies) {
  const RankState& state = ranks_[rank];
  kernels::LaunchArguments launch;
  launch.count = static_cast<std::uint32_t>(count);
  launch.progress = state.progress;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t call = (operation + k) % blocks_.size();
    launch.blocks = std::max(launch.blocks, blocks_[call]);
    kernels::DeviceArguments& arguments = launch.programs[k];
    arguments.program = state.device_programs[call];
    arguments.input = memory.input.empty() ? copies.output + memory.input_offset : copies.input;
    arguments.output = copies.output + memory.output_offset;
    arguments.scratch = state.scratch;
    arguments.scalar = copies.scalar;
    arguments.workspace = state.workspace;
    arguments.reports = state.reports;
    arguments.stop = state.stop;
  }
  machine_.launch({.program = program_,
                   .kernel = setup_.kernel,
                   .gpu = static_cast<std::uint32_t>(rank),
                   .grid = {launch.blocks},
                   .block = {setup_.threads},
                   .arguments = software_gpu::arguments_of(launch)});
}

void MachineDevices::scribble(std::size_t rank, const DeviceMemory& memory, const Copies& copies) {
  if (memory.input.empty()) return;
  machine_.launch({.program = scribbling_,
                   .kernel = "scribble",
                   .gpu = static_cast<std::uint32_t>(rank),
                   .grid = {1},
                   .block = {32},
                   .arguments = software_gpu::arguments_of(
                       copies.input, static_cast<std::uint32_t>(memory.input.size() / sizeof(std::uint32_t)))});
}

bool MachineDevices::is_running(std::size_t rank) const {
  return std::any_of(machine_.launches().begin(), machine_.launches().end(),
                     [&](const software_gpu::Launch& launch) { return launch.request.gpu == rank; });
}

std::uint64_t MachineDevices::traffic() {
  std::vector<std::uint64_t> addresses = buffers_;
  for (const RankState& rank : ranks_) {
    addresses.push_back(rank.scratch);
    addresses.push_back(rank.workspace);
  }
  std::uint64_t bytes = 0;
  for (const std::uint64_t address : addresses)
    if (const software_gpu::Allocation* const memory = machine_.addresses().find(address); memory != nullptr)
      bytes += memory->bytes_read + memory->bytes_written;
  return bytes;
}

std::uint64_t MachineDevices::flags_of(std::size_t rank) {
  const software_gpu::Allocation* const memory = machine_.addresses().find(ranks_[rank].workspace);
  return memory == nullptr ? 0 : memory->releases;
}

void MachineDevices::run(std::vector<std::vector<DeviceMemory>>& operations) {
  std::vector<std::vector<Copies>> copies(operations.size());
  for (std::size_t operation = 0; operation < operations.size(); ++operation)
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      copies[operation].push_back(copies_of(rank, operations[operation][rank]));
  std::vector<std::size_t> launched(ranks_.size(), 0);
  std::vector<std::size_t> scribbled(ranks_.size(), 0);
  if (setup_.turns_alone > 0) {
    launch(0, 0, 1, operations[0][0], copies[0][0]);
    launched[0] = 1;
    machine_.run_some(setup_.turns_alone);
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) flags_sent_alone_ += flags_of(rank);
  }
  do {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (is_running(rank)) continue;
      if (setup_.scribbles && scribbled[rank] < launched[rank]) {
        scribble(rank, operations[scribbled[rank]][rank], copies[scribbled[rank]][rank]);
        ++scribbled[rank];
      } else if (launched[rank] < operations.size()) {
        const bool is_chain = !setup_.fused.empty();
        const std::size_t memory = is_chain ? 0 : launched[rank];
        const std::size_t count = std::min<std::size_t>(is_chain ? setup_.fused[rank] : 1, operations.size() - launched[rank]);
        launch(rank, launched[rank], count, operations[memory][rank], copies[memory][rank]);
        launched[rank] += count;
      }
    }
    machine_.run_some(16);
  } while (!machine_.idle() || launched != std::vector<std::size_t>(ranks_.size(), operations.size()));
  for (std::size_t operation = 0; operation < operations.size(); ++operation)
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      copy_from(copies[operation][rank].input, operations[operation][rank].input);
      copy_from(copies[operation][rank].output, operations[operation][rank].output);
    }
}

}  // namespace seto::support
