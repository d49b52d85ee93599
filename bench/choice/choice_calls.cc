// Measures what choice takes against every algorithm that it could have taken, one process for each rank; the environment says
// which.
//
//   choice_calls ROUNDS BATCH_MS COLLECTIVE:BYTES...
//
// BYTES as in the size column of the benchmarks. In each round every candidate runs one batch of calls, in rotated order, the
// choice without a pin among them. Rank 0 prints a line of JSON for each point: the chosen algorithm, and the microseconds of a
// call in each round, the mean over ranks; the choice itself is the candidate "".
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

struct Point {
  std::string collective;
  std::size_t bytes = 0;
};

struct Candidate {
  std::string name;  // empty: no pin
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  std::vector<double> microseconds;  // by round
};

class Rank final {
 public:
  Rank(int rounds, double batch_ms) : rounds_(rounds), batch_us_(batch_ms * 1e3) {}

  bool connect() {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.memory = setoMemoryHost;
    config.codec = "none";  // only algorithms are compared
    return succeeded(setoCommInitEnvironment(&comm_, &config), "init") && succeeded(setoCommUserRank(comm_, &rank_), "rank") &&
           succeeded(setoCommCount(comm_, &ranks_), "count");
  }
  bool close() { return succeeded(setoCommDestroy(comm_), "destroy"); }

  bool measure(const Point& point) {
    std::string chosen;
    std::vector<Candidate> candidates;
    if (!find_candidates(point, chosen, candidates)) return false;
    send_.assign(point.bytes / sizeof(float) + 1, 1.0F);
    receive_.assign(send_.size(), 0.0F);
    for (int round = -1; round < rounds_; ++round)  // the first round warms up and says how many calls fill a batch
      for (std::size_t turn = 0; turn < candidates.size(); ++turn) {
        Candidate& one = candidates[(turn + static_cast<std::size_t>(round + 1)) % candidates.size()];
        if (!run_batch(point, one, round < 0)) return false;
      }
    print(point, chosen, candidates);
    return true;
  }

 private:
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
    candidates.emplace_back();
    for (const auto& one : explained["candidates"]) {
      if (!one.contains("seconds")) continue;  // refused
      Candidate candidate;
      candidate.name = one["algorithm"].get<std::string>();
      if (!succeeded(setoAlgorithmId(candidate.name.c_str(), &candidate.config.algorithm), "algorithm")) return false;
      candidates.push_back(std::move(candidate));
    }
    return true;
  }

  // The root rotates: calls with one root would overlap, and a call alone would take longer than their mean.
  bool call(const Point& point, const setoCallConfig_t* config) {
    const int root = roots_++ % ranks_;
    const std::size_t all = point.bytes / sizeof(float);
    const std::size_t part = std::max<std::size_t>(1, all / static_cast<std::size_t>(ranks_));
    const std::string_view name = point.collective;
    const float* const from = send_.data();
    float* const to = receive_.data();
    if (name == "all_reduce") return done(setoAllReduceConfig(from, to, all, setoFloat32, setoSum, comm_, nullptr, config));
    if (name == "reduce") return done(setoReduceConfig(from, to, all, setoFloat32, setoSum, root, comm_, nullptr, config));
    if (name == "broadcast") return done(setoBroadcastConfig(from, to, all, setoFloat32, root, comm_, nullptr, config));
    if (name == "all_gather") return done(setoAllGatherConfig(from, to, part, setoFloat32, comm_, nullptr, config));
    if (name == "reduce_scatter")
      return done(setoReduceScatterConfig(from, to, part, setoFloat32, setoSum, comm_, nullptr, config));
    if (name == "all_to_all") return done(setoAlltoAllConfig(from, to, part, setoFloat32, comm_, nullptr, config));
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
    const setoCallConfig_t* const config = one.name.empty() ? nullptr : &one.config;
    if (warms_up && (!call(point, config) || !call(point, config))) return false;
    const int calls = warms_up ? 1 : calls_;
    if (!succeeded(setoBarrier(comm_, nullptr), "barrier")) return false;
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i)
      if (!call(point, config)) return false;
    double mean = microseconds_since(start) / calls;
    if (!agree(mean)) return false;
    if (!warms_up)
      one.microseconds.push_back(mean);
    else if (one.name.empty())
      calls_ = std::clamp(static_cast<int>(batch_us_ / mean), 1, 2000);
    return true;
  }

  void print(const Point& point, const std::string& chosen, const std::vector<Candidate>& candidates) const {
    if (rank_ != 0) return;
    nlohmann::json line = {{"collective", point.collective},
                           {"bytes", point.bytes},
                           {"ranks", ranks_},
                           {"chosen", chosen},
                           {"calls", calls_},
                           {"links", links_}};
    for (const Candidate& one : candidates) line["us"][one.name] = one.microseconds;
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  setoComm_t comm_ = nullptr;
  int rank_ = 0, ranks_ = 0, rounds_ = 0, calls_ = 1, roots_ = 0;
  double batch_us_ = 0;
  std::vector<float> send_, receive_;
  nlohmann::json links_;  // what is known of each tier
};

bool parse(std::string_view text, Point& point) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
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
    std::fprintf(stderr, "usage: %s ROUNDS BATCH_MS COLLECTIVE:BYTES...\n", words[0]);
    return 2;
  }
  Rank rank(rounds, batch_ms);
  const auto measured = [&](const Point& point) { return rank.measure(point); };
  return rank.connect() && std::all_of(points.begin(), points.end(), measured) && rank.close() ? 0 : 1;
}
