#pragma once

#include <cstdint>

#include "src/engine/kernels/device_program.h"
#include "src/engine/kernels/portable.h"

// One launch of a device program: its arguments, what blocks keep between launches, and how they are stopped.
namespace seto::kernels {

// The entry kernels are compiled for blocks of at most so many threads, and are launched with no more.
inline constexpr std::uint32_t kMostThreads = 512;

// A multiprocessor has 65536 registers, so a thread of such a block can have so many.
inline constexpr std::uint32_t kMostRegisters = 65536 / kMostThreads;

// With so many, another kernel's blocks of 160 threads still fit beside it.
inline constexpr std::uint32_t kRegisterGoal = 96;

// Where a block was when it was stopped, in one word: 0 if it was not. More than one thread of a block may write it.
struct StopReport {
  std::uint32_t step = 0;
  std::uint32_t operand = 0;  // of the step, for which it waited; kWaitsForDone: for a peer to do the operation before
  std::uint32_t slice = 0;
};
inline constexpr std::uint32_t kWaitsForDone = kMostDeviceOperands;

SETO_KERNEL std::uint64_t word_of(const StopReport& report) {
  return std::uint64_t{1} << 63 | std::uint64_t{report.operand} << 48 | std::uint64_t{report.step} << 24 | report.slice;
}
SETO_KERNEL StopReport stop_report_of(std::uint64_t word) {
  constexpr std::uint64_t kLow24 = (1U << 24) - 1;
  return {static_cast<std::uint32_t>(word >> 24 & kLow24), static_cast<std::uint32_t>(word >> 48 & 0xFFU),
          static_cast<std::uint32_t>(word & kLow24)};
}

// The begin of a rank's workspace: what its blocks keep from one operation to the next. Zeros at first.
struct WorkspaceBegin {
  std::uint64_t operation = 0;        // the number of operations with flags that are done
  std::uint64_t exchanges = 0;        // the number of exchanges of marked messages that are done
  std::uint32_t finished_blocks = 0;  // of the operation under way
  std::uint32_t stopped = 0;          // not 0: a thread has left a program because it was stopped, so no later one begins
  std::uint64_t arrivals =
      0;  // blocks that wait for the next program of their launch; from bit kRoundBits on: how often all came
};
inline constexpr int kRoundBits = 32;

// Bits of the word by which the host, or a block that refuses a message, ends kernels. A block that has lent messages takes them
// back at the first one, and ends at the second one: until then peers may be reading the caller's buffers.
inline constexpr std::uint32_t kStop = 1;
inline constexpr std::uint32_t kStopAtOnce = 2;
inline constexpr std::uint32_t kStopRefused = 4;

// One program of a launch.
struct DeviceArguments {
  Address program = 0;
  Address input = 0;
  Address output = 0;
  Address scratch = 0;
  Address scalar = 0;
  Address residual = 0;   // 0: errors of encoding are dropped
  Address workspace = 0;  // this rank's
  Address reports = 0;    // std::uint64_t by block: a StopReport as a word; memory that the host can read
  Address stop = 0;       // std::uint32_t: 0, or bits of kStop...; memory that the host can write
};

inline constexpr std::uint32_t kMostPrograms = 16;  // of a launch: its arguments stay far below 4 KiB, which all GPUs take

// One launch: its blocks execute one program after another, each an operation of its own.
struct LaunchArguments {
  std::uint32_t count = 1;   // programs
  std::uint32_t blocks = 1;  // of the launch: the most that a program has
  std::uint64_t number = 0;  // of the launch
  Address progress = 0;      // std::uint64_t: a LaunchProgress as a word; memory that the host can read. Used by several programs
  DeviceArguments programs[kMostPrograms];
};

// How many programs of which launch are done, in one word.
struct LaunchProgress {
  std::uint64_t launch = 0;
  std::uint32_t done = 0;
};
inline constexpr int kDoneBits = 8;
static_assert(kMostPrograms < 1U << kDoneBits);

SETO_KERNEL std::uint64_t word_of(const LaunchProgress& progress) { return progress.launch << kDoneBits | progress.done; }
SETO_KERNEL LaunchProgress launch_progress_of(std::uint64_t word) {
  return {word >> kDoneBits, static_cast<std::uint32_t>(word & ((1U << kDoneBits) - 1))};
}

}  // namespace seto::kernels
