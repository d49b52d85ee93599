// Measures the time in which two cores exchange a flag. It shows whether they share a cache at the moment (near) or not (far).
//
//   flag_probe [exchanges]     prints {"exchange_ns": N, "back_to_back_ns": N}
//
// exchange_ns      median of exchanges timed one by one, including the cost of the clock; this figure defines the states
// back_to_back_ns  median of the means of batches without a clock inside: the floor of a call that only exchanges a flag
#include <algorithm>
#include <vector>

#include "bench/limit/processes.h"

namespace {

using seto::limit::Barrier;
using seto::limit::Clock;
using seto::limit::seconds_since;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double time_one_by_one(Barrier& barrier, int exchanges) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(exchanges));
  for (int i = 0; i < exchanges; ++i) {
    const auto start = Clock::now();
    barrier.arrive_and_wait();
    times.push_back(seconds_since(start));
  }
  return median(times);
}

double time_batches(Barrier& barrier, int exchanges) {
  constexpr int kBatch = 200;
  std::vector<double> means;
  for (int done = 0; done < exchanges; done += kBatch) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) barrier.arrive_and_wait();
    means.push_back(seconds_since(start) / kBatch);
  }
  return median(means);
}

}  // namespace

int main(int argc, char** argv) {
  const int exchanges = argc > 1 ? std::clamp(std::atoi(argv[1]), 1000, 10'000'000) : 20'000;
  auto* lines = static_cast<seto::limit::BarrierLines*>(seto::limit::map_shared(sizeof(seto::limit::BarrierLines)));
  const int rank = seto::limit::fork_ranks(2);
  Barrier barrier(lines, rank, 2);
  for (int i = 0; i < 1000; ++i) barrier.arrive_and_wait();
  const double single = time_one_by_one(barrier, exchanges);
  const double batch = time_batches(barrier, exchanges);
  if (rank == 0) std::printf("{\"exchange_ns\": %.1f, \"back_to_back_ns\": %.1f}\n", single * 1e9, batch * 1e9);
  return seto::limit::join_ranks(rank, true) ? 0 : 1;
}
