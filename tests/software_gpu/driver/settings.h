#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/device/cuda/driver_code.h"

namespace seto::software_gpu::driver {

// A call that fails on purpose.
struct InjectedError {
  std::uint64_t first = 1;  // the number of the first call that fails, from 1
  std::uint64_t last = 1;
  cuda::DriverCode code{};
};

// The stand-in reads these from variables SOFTWARE_GPU_* when it starts; README.md lists them.
struct Settings {
  std::uint32_t gpus = 1;
  std::uint32_t multiprocessors = 4;
  std::uint32_t queues = 8;             // of a context; streams that share one start their work in the order of the calls
  std::uint64_t memory = 256ULL << 20;  // bytes of each GPU
  std::uint64_t seed = 1;
  std::uint64_t step_budget = 4'000'000'000;
  bool weak = false;
  bool global_races = false;  // are errors; only where no host function, host thread or other process orders kernels
  int version = 13000;
  int capability = 90;
  int compute_mode = 0;
  std::string exclusive_folder;      // of locks by which processes exclude each other; empty: they do not
  std::uint32_t multi_instance = 0;  // so many GPUs, from 0, are slices of one GPU
  bool launch_blocking = false;      // CUDA_LAUNCH_BLOCKING
  std::uint32_t wait_seconds = 60;   // a call that waits for longer than this fails
  std::vector<std::uint64_t> peers;  // for each GPU a bit for each GPU whose memory it can reach
  std::multimap<std::string, InjectedError> errors;
  std::map<std::string, std::uint32_t> delays;  // ms before calls of a name
  bool dma_buf = true;                          // is offered
  int write_order = 0;                          // of other devices: 0 none, 100 for the owner, 200 for all GPUs
  int flush_options = 1;                        // 1: the host may call the flush
  bool multicast = true;                        // is offered; "absent": the functions are lacking, too
  bool memory_files = true;                     // memory has file descriptors
  bool mapping_waits = false;                   // mapping of memory waits for all work, as unmapping does

  // A variable that cannot be read ends the process with a message: a test must not run with other settings than it states.
  static Settings of_environment();
};

// "cuMemAlloc:2", "cuMemAlloc:2:3" (the third call), "cuMemAlloc:2:3-5" or "cuMemAlloc:2:3-" (all from the third on).
[[nodiscard]] std::multimap<std::string, InjectedError> parse_errors(const std::string& text);

}  // namespace seto::software_gpu::driver
