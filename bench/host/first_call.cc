// Measures the cost of the first call after init, and of a small call back to back, with fresh processes for every size.
//
//   first_call [--ranks N] [--sizes BYTES,...] [--calls N]
//
// Prints one JSON object for each size: init_us, its part calibration_us, first_call_us (page faults included), back_to_back_us
// (median of the means of batches, over N further calls). Each figure is the slowest rank's.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "bench/limit/processes.h"
#include "seto/seto.h"

namespace {

using seto::limit::Barrier;
using seto::limit::Clock;
using seto::limit::seconds_since;

struct Options {
  int ranks = 4;
  std::vector<std::size_t> sizes = {8, std::size_t{1} << 20};
  int calls = 0;
};

struct Shared {
  seto::limit::BarrierLines barrier;
  setoUniqueId id;
  std::atomic<double> figure[seto::limit::kMaxRanks];
};

bool succeeded(setoResult_t result, const char* what) {
  if (result == setoSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, setoGetLastError(nullptr));
  return false;
}

// Reads the calibration from the communicator's dump.
double calibration_us(setoComm_t comm) {
  std::string text(1 << 16, '\0');
  if (!succeeded(setoCommDump(comm, setoFormatJson, text.data(), text.size(), nullptr), "dump")) return 0;
  constexpr std::string_view kKey = "\"agreed_in_us\":";
  const std::size_t at = text.find(kKey);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + kKey.size(), nullptr);
}

// A rank of one job, whose process has never made another communicator.
class Rank final {
 public:
  Rank(Shared* shared, int rank, int ranks)
      : shared_(shared), rank_(rank), ranks_(ranks), barrier_(&shared->barrier, rank, ranks) {}

  bool measure(std::size_t size, int calls) {
    const std::size_t count = std::max(size / sizeof(float), std::size_t{1});
    const std::vector<float> input(count, 1.0F);
    std::vector<float> output(count, 0.0F);
    double init = 0;
    setoComm_t comm = nullptr;
    if (!connect(&comm, &init)) return false;
    auto call = [&] { return setoAllReduce(input.data(), output.data(), count, setoFloat32, setoSum, comm, nullptr); };
    barrier_.arrive_and_wait();
    const auto start = Clock::now();
    if (!succeeded(call(), "first all_reduce")) return false;
    const double first = slowest(seconds_since(start));
    const bool right = std::all_of(output.begin(), output.end(), [this](float sum) { return sum == static_cast<float>(ranks_); });
    const double calibration = slowest(calibration_us(comm));
    const double repeated = slowest(calls > 0 ? back_to_back(call, calls) : 0);
    if (rank_ == 0) {
      std::printf(
          "{\"ranks\": %d, \"size\": %zu, \"init_us\": %.2f, \"calibration_us\": %.2f, \"first_call_us\": %.2f, "
          "\"back_to_back_us\": %.5f, \"wrong\": "
          "%d}\n",
          ranks_, size, init * 1e6, calibration, first * 1e6, repeated * 1e6, right ? 0 : 1);
    }
    return succeeded(setoCommDestroy(comm), "destroy") && right;
  }

 private:
  bool connect(setoComm_t* comm, double* init) {
    if (rank_ == 0 && !succeeded(setoGetUniqueId(&shared_->id), "unique id")) return false;
    barrier_.arrive_and_wait();
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.memory = setoMemoryHost;
    const auto start = Clock::now();
    if (!succeeded(setoCommInitRankConfig(comm, ranks_, shared_->id, rank_, &config), "init")) return false;
    *init = slowest(seconds_since(start));
    return true;
  }

  double slowest(double mine) {
    shared_->figure[rank_].store(mine, std::memory_order_release);
    barrier_.arrive_and_wait();
    double result = 0;
    for (int peer = 0; peer < ranks_; ++peer) result = std::max(result, shared_->figure[peer].load(std::memory_order_acquire));
    barrier_.arrive_and_wait();
    return result;
  }

  template <class Call>
  double back_to_back(Call call, int calls) {
    constexpr int kBatch = 200;
    std::vector<double> means;
    for (int i = 0; i < 10 * kBatch; ++i) (void)call();
    barrier_.arrive_and_wait();
    for (int done = 0; done < calls; done += kBatch) {
      const auto start = Clock::now();
      for (int i = 0; i < kBatch; ++i) (void)call();
      means.push_back(seconds_since(start) / kBatch);
    }
    std::sort(means.begin(), means.end());
    return means[means.size() / 2];
  }

  Shared* shared_;
  int rank_;
  int ranks_;
  Barrier barrier_;
};

// The process that forks the ranks must itself be fresh, because the library does not work in a child of a process that has used
// it.
bool run_job(const Options& options, std::size_t size) {
  std::fflush(stdout);
  const pid_t job = fork();
  if (job < 0) return false;
  if (job == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto* shared = static_cast<Shared*>(seto::limit::map_shared(sizeof(Shared)));
    const int rank = seto::limit::fork_ranks(options.ranks);
    const bool good = Rank(shared, rank, options.ranks).measure(size, options.calls);
    const bool all_good = seto::limit::join_ranks(rank, good);
    std::fflush(stdout);
    _exit(all_good ? 0 : 1);
  }
  int state = 0;
  return waitpid(job, &state, 0) == job && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--ranks") {
      options->ranks = std::atoi(argv[i + 1]);
    } else if (name == "--calls") {
      options->calls = std::atoi(argv[i + 1]);
    } else if (name == "--sizes") {
      options->sizes.clear();
      for (char* next = argv[i + 1]; *next != '\0'; next += *next == ',' ? 1 : 0) {
        char* end = nullptr;
        options->sizes.push_back(std::strtoull(next, &end, 10));
        if (end == next) return false;
        next = end;
      }
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options->ranks >= 1 && options->ranks <= seto::limit::kMaxRanks && !options->sizes.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: %s [--ranks N] [--sizes BYTES,...] [--calls N]\n", argv[0]);
    return 2;
  }
  bool good = true;
  for (const std::size_t size : options.sizes) good = run_job(options, size) && good;
  return good ? 0 : 1;
}
