#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/common/sizes.h"
#include "bench/common/types.h"

namespace seto::bench {

enum class Issue : std::uint8_t {
  back_to_back,        // -z 0: blocking calls, one after another
  barrier_after_each,  // -z 1: blocking calls, a barrier of the bench after each
  queued,              // -z 2: all queued on a host stream, one wait at the end
  queued_one_by_one,   // -z 3: queued on a host stream, a wait after each
};

enum class Average : std::uint8_t { rank_0, mean, min, max };

inline constexpr int kAllRoots = -1;

struct Options {
  SizeRange sizes;
  int iterations = 20;
  int aggregated = 1;
  int warmups = 1;
  int cycles = 1;
  int checks = 1;
  int threads = 1;
  int gpus = 1;            // -g: ranks of each thread of the command line, on GPU memory
  int graph_launches = 0;  // -G: of a graph of the timed calls; 0: calls are launched one by one
  int processes = 1;
  std::vector<setoDataType_t> types = {setoFloat32};
  std::vector<Op> ops = {Op::sum};
  int root = 0;
  Issue issue = Issue::back_to_back;
  Average average = Average::mean;
  bool report_cpu_time = false;
  bool report_timestamps = false;
  bool report_iterations = false;
  bool on_device = false;   // --memory device
  bool registered = false;  // -R 1: setoCommRegister; host memory comes from setoMemAlloc
  int timeout_s = 0;        // 0: only the library's own deadlines
  double min_bandwidth = 0;
  bool deterministic = false;
  bool one_place = false;  // every call uses the same part of the buffers
  std::string algorithm;
  std::vector<std::string> codecs = {"none"};  // by name; one table for each
  bool codec_of_calls = false;                 // --codec was given
  bool codec_of_environment = false;           // from SETO_CODEC, which the library applies
  std::string json_path;
  std::string plot_path;
  std::vector<std::string> plot_add;  // JSON files of earlier runs, "path" or "path=label"

  int ranks_of_process() const { return threads * gpus; }
  int ranks() const { return processes * ranks_of_process(); }
  // The table shows the codec that each row used.
  bool coded() const { return codec_of_calls || codec_of_environment; }
};

struct Parsed {
  Options options;
  bool run = true;  // false: print `text` and exit with `exit_code`
  int exit_code = 0;
  std::string text;
};

// argv as main gets it. Not thread-safe (getopt).
Parsed parse_options(int argc, char** argv);

}  // namespace seto::bench
