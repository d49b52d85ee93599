// Keeps a fixed number of all_reduces in flight, on streams in turn, and prints how many bytes they moved. Calls of one stream
// run one after another; calls of two streams overlap.
//
//   in_flight [--size BYTES] [--depth N] [--calls N] [--streams N]        one process for each rank; the environment gives the
//   rank
//
// Rank 0 prints JSON. bytes_per_second counts the bytes that a rank sends, which for two ranks are those that cross the link in
// each direction.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "seto/seto.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kTimeoutMs = 60'000;

struct Options {
  std::size_t size = std::size_t{1} << 20;
  std::size_t depth = 16;
  std::size_t calls = 256;
  std::size_t streams = 1;
};

bool succeeded(setoResult_t result, const char* what) {
  if (result == setoSuccess) return true;
  std::fprintf(stderr, "in_flight: %s: %s\n", what, setoGetLastError(nullptr));
  return false;
}

bool parse(int count, char** words, Options* options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = words[i];
    const std::size_t value = std::strtoull(words[i + 1], nullptr, 10);
    if (value == 0) return false;
    if (name == "--size") {
      options->size = value;
    } else if (name == "--depth") {
      options->depth = value;
    } else if (name == "--calls") {
      options->calls = value;
    } else if (name == "--streams") {
      options->streams = value;
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

// Buffers that are used in turn, each again once the call that used it before has ended.
class Window final {
 public:
  Window(const Options& options, setoComm_t comm, const std::vector<setoStream_t>& streams)
      : count_(options.size / sizeof(float)),
        comm_(comm),
        streams_(streams),
        inputs_(options.depth, std::vector<float>(count_, 1.0F)),
        outputs_(options.depth, std::vector<float>(count_)),
        positions_(options.depth, 0) {}

  bool run(std::size_t calls) {
    for (std::size_t call = 0; call < calls; ++call) {
      const std::size_t place = call % positions_.size();
      if (call >= positions_.size() && !wait_for(place)) return false;
      if (!succeeded(
              setoAllReduce(inputs_[place].data(), outputs_[place].data(), count_, setoFloat32, setoSum, comm_, stream(place)),
              "all_reduce") ||
          !succeeded(setoStreamPosition(stream(place), &positions_[place]), "position")) {
        return false;
      }
    }
    for (std::size_t place = 0; place < std::min(calls, positions_.size()); ++place) {
      if (!wait_for(place)) return false;
    }
    return true;
  }

  [[nodiscard]] bool is_right(int ranks) const {
    return std::all_of(outputs_.begin(), outputs_.end(), [ranks](const std::vector<float>& output) {
      return std::all_of(output.begin(), output.end(), [ranks](float sum) { return sum == static_cast<float>(ranks); });
    });
  }

 private:
  setoStream_t stream(std::size_t place) { return streams_[place % streams_.size()]; }
  bool wait_for(std::size_t place) { return succeeded(setoStreamWait(stream(place), positions_[place], kTimeoutMs), "wait"); }

  std::size_t count_;
  setoComm_t comm_;
  std::vector<setoStream_t> streams_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<float>> outputs_;
  std::vector<uint64_t> positions_;
};

bool measure(const Options& options, setoComm_t comm) {
  int rank = 0;
  int ranks = 0;
  std::vector<setoStream_t> streams(options.streams);
  if (!succeeded(setoCommUserRank(comm, &rank), "rank") || !succeeded(setoCommCount(comm, &ranks), "count")) {
    return false;
  }
  for (setoStream_t& stream : streams)
    if (!succeeded(setoStreamCreate(&stream), "stream")) return false;
  Window window(options, comm, streams);
  if (!window.run(options.depth) || !succeeded(setoBarrier(comm, nullptr), "barrier")) return false;
  const auto start = Clock::now();
  if (!window.run(options.calls)) return false;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double factor = 2.0 * (ranks - 1) / ranks;
  if (rank == 0) {
    std::printf("{\"size\": %zu, \"depth\": %zu, \"calls\": %zu, \"seconds\": %.6f, \"bytes_per_second\": %.0f, \"wrong\": %d}\n",
                options.size, options.depth, options.calls, seconds,
                static_cast<double>(options.size * options.calls) * factor / seconds, window.is_right(ranks) ? 0 : 1);
  }
  const bool ended = std::all_of(streams.begin(), streams.end(),
                                 [](setoStream_t stream) { return succeeded(setoStreamDestroy(stream), "stream"); });
  return ended && window.is_right(ranks);
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, &options)) {
    std::fprintf(stderr, "usage: %s [--size BYTES] [--depth N] [--calls N] [--streams N]\n", words[0]);
    return 2;
  }
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.memory = setoMemoryHost;
  setoComm_t comm = nullptr;
  if (!succeeded(setoCommInitEnvironment(&comm, &config), "init")) return 1;
  const bool good = measure(options, comm);
  return succeeded(setoCommDestroy(comm), "destroy") && good ? 0 : 1;
}
