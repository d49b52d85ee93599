// Measures the cost of making a communicator: time, and memory before it is used. Ranks are threads of several processes.
//
//   comm_cost [--ranks N] [--processes N] [--communicators N]
//
// Prints JSON: init_s (slowest rank, the first communicator), and bytes_per_rank for each communicator, the growth of the
// processes' proportional share of memory (Pss). The first communicator includes what all communicators of a process share.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/limit/processes.h"
#include "seto/seto.h"

namespace {

using seto::limit::Barrier;
using seto::limit::Clock;
using seto::limit::seconds_since;

constexpr int kMostCommunicators = 4;

struct Options {
  int ranks = 64;
  int processes = 8;
  int communicators = 2;
};

struct Shared {
  seto::limit::BarrierLines barrier;
  setoUniqueId ids[kMostCommunicators];
  double seconds[seto::limit::kMaxRanks];
  double bytes[seto::limit::kMaxRanks][kMostCommunicators];
};

bool succeeded(setoResult_t result, const char* what) {
  if (result == setoSuccess) return true;
  std::fprintf(stderr, "comm_cost: %s: %s\n", what, setoGetLastError(nullptr));
  return false;
}

// The memory of this process, with its proportional share of shared pages.
double memory_now() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("Pss:", 0) == 0) return std::strtod(line.c_str() + 4, nullptr) * 1024;
  }
  return 0;
}

class Process final {
 public:
  Process(Shared* shared, int index, const Options& options)
      : shared_(shared), index_(index), options_(options), barrier_(&shared->barrier, index, options.processes) {}

  bool run() {
    bool good = true;
    std::vector<std::vector<setoComm_t>> made;
    for (int communicator = 0; communicator < options_.communicators; ++communicator) {
      if (index_ == 0) good = succeeded(setoGetUniqueId(&shared_->ids[communicator]), "unique id") && good;
      const double before = memory_now();
      barrier_.arrive_and_wait();
      const auto start = Clock::now();
      made.emplace_back();
      good = make(communicator, made.back()) && good;
      if (communicator == 0) shared_->seconds[index_] = seconds_since(start);
      barrier_.arrive_and_wait();
      shared_->bytes[index_][communicator] = memory_now() - before;
      barrier_.arrive_and_wait();
    }
    for (auto& comms : made) {
      for (setoComm_t comm : comms) good = (comm == nullptr || succeeded(setoCommAbort(comm), "abort")) && good;
    }
    return good;
  }

 private:
  // One thread for each rank, because each rank waits for all the others.
  bool make(int communicator, std::vector<setoComm_t>& comms) {
    const int threads = options_.ranks / options_.processes;
    comms.assign(static_cast<std::size_t>(threads), nullptr);
    std::vector<char> good(static_cast<std::size_t>(threads), 0);
    std::vector<std::thread> ranks;
    for (int thread = 0; thread < threads; ++thread) {
      ranks.emplace_back([&, thread] {
        setoConfig_t config = SETO_CONFIG_INITIALIZER;
        config.memory = setoMemoryHost;
        const int rank = index_ * threads + thread;
        const auto place = static_cast<std::size_t>(thread);
        good[place] =
            succeeded(setoCommInitRankConfig(&comms[place], options_.ranks, shared_->ids[communicator], rank, &config), "init");
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return std::all_of(good.begin(), good.end(), [](char one) { return one != 0; });
  }

  Shared* shared_;
  int index_;
  Options options_;
  Barrier barrier_;
};

void print(const Shared& shared, const Options& options) {
  std::printf("{\"ranks\": %d, \"processes\": %d, \"init_s\": %.4f, \"bytes_per_rank\": [", options.ranks, options.processes,
              *std::max_element(shared.seconds, shared.seconds + options.processes));
  for (int communicator = 0; communicator < options.communicators; ++communicator) {
    double sum = 0;
    for (int process = 0; process < options.processes; ++process) sum += shared.bytes[process][communicator];
    std::printf("%s%.0f", communicator == 0 ? "" : ", ", sum / options.ranks);
  }
  std::printf("]}\n");
}

bool parse(int count, char** words, Options* options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = words[i];
    const int value = std::atoi(words[i + 1]);
    if (name == "--ranks") {
      options->ranks = value;
    } else if (name == "--processes") {
      options->processes = value;
    } else if (name == "--communicators") {
      options->communicators = value;
    } else {
      return false;
    }
  }
  return count % 2 == 1 && options->processes >= 1 && options->processes <= seto::limit::kMaxRanks && options->ranks >= 1 &&
         options->ranks % options->processes == 0 && options->communicators >= 1 && options->communicators <= kMostCommunicators;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, &options)) {
    std::fprintf(stderr, "usage: %s [--ranks N] [--processes N, which divides the ranks] [--communicators N]\n", words[0]);
    return 2;
  }
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  auto* shared = static_cast<Shared*>(seto::limit::map_shared(sizeof(Shared)));
  const int index = seto::limit::fork_ranks(options.processes);
  const bool good = seto::limit::join_ranks(index, Process(shared, index, options).run());
  if (good) print(*shared, options);
  return good ? 0 : 1;
}
