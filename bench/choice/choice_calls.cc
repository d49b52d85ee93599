// Measures what choice takes against every algorithm that it could have taken, one process for each rank; the environment says
// which.
//
//   choice_calls ROUNDS BATCH_MS COLLECTIVE:BYTES[:cuts]...
//
// BYTES as in the size column of the benchmarks. In each round every candidate runs one batch of calls, in rotated order, the
// choice without a pin among them. `cuts`: the chosen algorithm is a candidate with other slices, slots and kinds of stores, too.
// Rank 0 prints a line of JSON for each point: the chosen algorithm, and the microseconds of a call in each round, the mean over
// ranks; the choice itself is the candidate "".
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seto/seto.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool succeeded(setoResult_t result, const char* what) {
  if (result == setoSuccess) return true;
  std::fprintf(stderr, "choice_calls: %s: %s\n", what, setoGetLastError(nullptr));
  return false;
}

// Ranks that the scheduler puts on one core of several would measure the scheduler. Each rank takes a core of its own if there
// are enough, after init, which counts the usable cores.
void stay_on_a_core(int rank) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  int left = rank % CPU_COUNT(&usable);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &usable) && left-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      (void)sched_setaffinity(0, sizeof one, &one);  // without it the figures are noisier
    }
}

struct Point {
  std::string collective;
  std::size_t bytes = 0;
  bool has_cuts = false;
};

// Settings of a communicator for a cut that choice does not take. Slices are as in the README of src/core/choice.
struct OtherCut {
  const char* name;
  const char* variable;
  const char* value;
};
constexpr OtherCut kOtherCuts[] = {{"slice=16384", "SETO_SLICE_BYTES", "16384"},
                                   {"slice=65536", "SETO_SLICE_BYTES", "65536"},
                                   {"slice=131072", "SETO_SLICE_BYTES", "131072"},
                                   {"slice=262144", "SETO_SLICE_BYTES", "262144"},
                                   {"slice=524288", "SETO_SLICE_BYTES", "524288"},
                                   {"slice=1048576", "SETO_SLICE_BYTES", "1048576"},
                                   {"depth=4", "SETO_SLOT_DEPTH", "4"},
                                   {"store=cached", "SETO_SLOT_STORE", "cached"},
                                   {"store=streamed", "SETO_SLOT_STORE", "streamed"}};

struct Candidate {
  std::string name;  // empty: no pin
  setoComm_t comm = nullptr;
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  std::vector<double> microseconds;  // by round
};

class Rank final {
 public:
  Rank(int rounds, double batch_ms) : rounds_(rounds), batch_us_(batch_ms * 1e3) {}

  bool connect() {
    return open(comm_) && succeeded(setoCommUserRank(comm_, &rank_), "rank") && succeeded(setoCommCount(comm_, &ranks_), "count");
  }
  // Communicators whose settings pin a cut. Their algorithms are pinned by call, so they measure nothing.
  bool connect_others() {
    setenv("SETO_CALIBRATE", "off", 1);
    for (const OtherCut& cut : kOtherCuts) {
      setenv(cut.variable, cut.value, 1);
      const bool opened = open(others_.emplace_back());
      unsetenv(cut.variable);
      if (!opened) return false;
    }
    return true;
  }
  void settle() const { stay_on_a_core(rank_); }
  bool close() {
    for (const setoComm_t other : others_)
      if (!succeeded(setoCommDestroy(other), "destroy")) return false;
    return succeeded(setoCommDestroy(comm_), "destroy");
  }

  bool measure(const Point& point) {
    std::string chosen;
    std::vector<Candidate> candidates;
    if (!find_candidates(point, chosen, candidates)) return false;
    send_.assign(point.bytes / sizeof(float) + 1, 1.0F);
    receive_.assign(send_.size(), 0.0F);
    rounds_here_ = rounds_;
    for (int round = -1; round < rounds_here_; ++round)  // the first round warms up and says how many calls fill a batch
      for (std::size_t turn = 0; turn < candidates.size(); ++turn) {
        Candidate& one = candidates[(turn + static_cast<std::size_t>(round + 1)) % candidates.size()];
        if (!run_batch(point, one, round < 0)) return false;
      }
    print(point, chosen, candidates);
    return true;
  }

 private:
  static bool open(setoComm_t& comm) {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.memory = setoMemoryHost;
    config.codec = "none";  // only algorithms and cuts are compared
    return succeeded(setoCommInitEnvironment(&comm, &config), "init");
  }

  bool find_candidates(const Point& point, std::string& chosen, std::vector<Candidate>& candidates) {
    setoQuestion_t question = SETO_QUESTION_INITIALIZER;
    question.collective = point.collective.c_str();
    question.bytes = point.bytes;
    question.comm = comm_;
    std::string text(std::size_t{1} << 16, '\0');
    std::size_t size = 0;
    if (!succeeded(setoExplain(&question, setoFormatJson, text.data(), text.size(), &size), "explain")) return false;
    const nlohmann::json explained = nlohmann::json::parse(text.substr(0, size));
    chosen = explained["chosen"].get<std::string>();
    links_ = explained["links"];
    ranks_a_core_ = explained["ranks_a_core"].get<double>();
    slice_bytes_ = explained["slice_bytes"].get<std::uint64_t>();
    candidates.push_back({"", comm_, SETO_CALL_CONFIG_INITIALIZER, {}});
    for (const auto& one : explained["candidates"]) {
      if (!one.contains("seconds")) continue;  // refused
      Candidate candidate{one["algorithm"].get<std::string>(), comm_, SETO_CALL_CONFIG_INITIALIZER, {}};
      if (!succeeded(setoAlgorithmId(candidate.name.c_str(), &candidate.config.algorithm), "algorithm")) return false;
      candidates.push_back(std::move(candidate));
    }
    for (std::size_t i = 0; point.has_cuts && i < others_.size(); ++i) {
      Candidate candidate{kOtherCuts[i].name, others_[i], SETO_CALL_CONFIG_INITIALIZER, {}};
      if (!succeeded(setoAlgorithmId(chosen.c_str(), &candidate.config.algorithm), "algorithm")) return false;
      candidates.push_back(std::move(candidate));
    }
    return true;
  }

  // The root rotates: calls with one root would overlap, and a call alone would take longer than their mean.
  bool call(const Point& point, const Candidate& one) {
    const setoCallConfig_t* const config = one.name.empty() ? nullptr : &one.config;
    const setoComm_t comm = one.comm;
    const int root = roots_++ % ranks_;
    const std::size_t all = point.bytes / sizeof(float);
    const std::size_t part = std::max<std::size_t>(1, all / static_cast<std::size_t>(ranks_));
    const std::string_view name = point.collective;
    const float* const from = send_.data();
    float* const to = receive_.data();
    if (name == "all_reduce") return done(setoAllReduceConfig(from, to, all, setoFloat32, setoSum, comm, nullptr, config));
    if (name == "reduce") return done(setoReduceConfig(from, to, all, setoFloat32, setoSum, root, comm, nullptr, config));
    if (name == "broadcast") return done(setoBroadcastConfig(from, to, all, setoFloat32, root, comm, nullptr, config));
    if (name == "all_gather") return done(setoAllGatherConfig(from, to, part, setoFloat32, comm, nullptr, config));
    if (name == "reduce_scatter")
      return done(setoReduceScatterConfig(from, to, part, setoFloat32, setoSum, comm, nullptr, config));
    if (name == "all_to_all") return done(setoAlltoAllConfig(from, to, part, setoFloat32, comm, nullptr, config));
    std::fprintf(stderr, "choice_calls: no collective %s\n", point.collective.c_str());
    return false;
  }
  bool done(setoResult_t result) { return succeeded(result, "call"); }

  // The mean over the ranks; all of them get the same.
  bool agree(double& value) {
    double sum = 0;
    if (!succeeded(setoAllReduce(&value, &sum, 1, setoFloat64, setoSum, comm_, nullptr), "agree")) return false;
    value = sum / ranks_;
    return true;
  }

  bool run_batch(const Point& point, Candidate& one, bool warms_up) {
    double mean = 0;
    if (!warms_up) {
      if (!time_calls(point, one, calls_, mean)) return false;
      one.microseconds.push_back(mean);
      return true;
    }
    // A machine that other programs use disturbs single calls, so the fastest says how many calls fill a batch.
    constexpr int kWarmUps = 4;
    double fastest = 0;
    for (int i = 0; i < kWarmUps && (i < 2 || fastest < batch_us_); ++i) {
      if (!call(point, one) || !time_calls(point, one, 1, mean)) return false;
      fastest = i == 0 ? mean : std::min(fastest, mean);
    }
    if (!one.name.empty()) return true;
    calls_ = std::clamp(static_cast<int>(batch_us_ / fastest), 1, 2000);
    rounds_here_ = std::clamp(static_cast<int>(kCandidateUs / (calls_ * fastest)), std::min(rounds_, kFewestRounds), rounds_);
    return true;
  }

  bool time_calls(const Point& point, const Candidate& one, int calls, double& mean) {
    if (!succeeded(setoBarrier(comm_, nullptr), "barrier")) return false;
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i)
      if (!call(point, one)) return false;
    mean = microseconds_since(start) / calls;
    return agree(mean);
  }

  void print(const Point& point, const std::string& chosen, const std::vector<Candidate>& candidates) const {
    if (rank_ != 0) return;
    nlohmann::json line = {{"collective", point.collective},
                           {"bytes", point.bytes},
                           {"ranks", ranks_},
                           {"ranks_a_core", ranks_a_core_},
                           {"chosen", chosen},
                           {"slice_bytes", slice_bytes_},
                           {"calls", calls_},
                           {"links", links_}};
    for (const Candidate& one : candidates) line["us"][one.name] = one.microseconds;
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  // Long calls get fewer rounds, so that a candidate takes about this time.
  static constexpr double kCandidateUs = 200e3;
  static constexpr int kFewestRounds = 9;

  setoComm_t comm_ = nullptr;
  int rank_ = 0, ranks_ = 0, rounds_ = 0, rounds_here_ = 0, calls_ = 1, roots_ = 0;
  double batch_us_ = 0, ranks_a_core_ = 1;
  std::uint64_t slice_bytes_ = 0;   // of the choice
  std::vector<setoComm_t> others_;  // by kOtherCuts
  std::vector<float> send_, receive_;
  nlohmann::json links_;  // what is known of each tier
};

bool parse(std::string_view text, Point& point) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  constexpr std::string_view kCuts = ":cuts";
  point.has_cuts = text.ends_with(kCuts);
  point.collective = text.substr(0, colon);
  point.bytes = std::strtoull(text.substr(colon + 1).data(), nullptr, 10);
  return point.bytes >= sizeof(float);
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 2 ? std::atoi(words[1]) : 0;
  const double batch_ms = count > 2 ? std::atof(words[2]) : 0;
  std::vector<Point> points(static_cast<std::size_t>(std::max(count - 3, 0)));
  bool right = rounds > 0 && batch_ms > 0 && !points.empty();
  for (std::size_t i = 0; i < points.size(); ++i) right = right && parse(words[i + 3], points[i]);
  if (!right) {
    std::fprintf(stderr, "usage: %s ROUNDS BATCH_MS COLLECTIVE:BYTES[:cuts]...\n", words[0]);
    return 2;
  }
  Rank rank(rounds, batch_ms);
  const bool has_cuts = std::any_of(points.begin(), points.end(), [](const Point& point) { return point.has_cuts; });
  if (!rank.connect() || (has_cuts && !rank.connect_others())) return 1;
  rank.settle();
  const auto measured = [&](const Point& point) { return rank.measure(point); };
  return std::all_of(points.begin(), points.end(), measured) && rank.close() ? 0 : 1;
}
