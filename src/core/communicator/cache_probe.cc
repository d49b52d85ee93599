#include "src/core/communicator/cache_probe.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "src/device/reduce.h"

namespace seto {
namespace {

constexpr std::uint64_t kShortest = 128 << 10;  // beyond a first-level cache, which holds too little of a call to count
constexpr int kBatches = 6;
constexpr double kBatchSeconds = 5e-6;  // so that the steps of the clock do not show
constexpr int kMostPasses = 64;         // of a batch
constexpr std::uint64_t kOperands = 3;
constexpr double kAssumedBytes = 1 << 20;  // of a cache, where the time did not suffice
// A pass that is slower than this share of the fastest one has left the cache. Measured: 250 GB/s in a cache of 1 MiB, 110 to 130
// beyond it, and 150 to 200 at its edge.
constexpr double kStillCached = 0.65;

// The time of the fastest of several batches, for one pass.
double seconds_of_a_pass(const std::function<void(std::uint64_t)>& pass, std::uint64_t bytes,
                         const std::function<double()>& seconds, double until) {
  double now = seconds();
  pass(bytes);  // brings the operands into the cache
  double took = seconds() - now;
  const int passes = took > 0 ? static_cast<int>(std::clamp(kBatchSeconds / took, 1.0, double{kMostPasses})) : kMostPasses;
  double best = INFINITY;
  for (int batch = 0; batch < kBatches && (batch == 0 || now < until); ++batch) {
    const double begin = seconds();
    for (int i = 0; i < passes; ++i) pass(bytes);
    now = seconds();
    took = now - begin;
    if (took > 0) best = std::min(best, took / passes);
  }
  return best;
}

}  // namespace

CacheCost probe_cache(const std::function<void(std::uint64_t bytes)>& pass, const std::function<double()>& seconds) {
  const double until = seconds() + kCacheProbeSeconds;
  CacheCost found;
  for (std::uint64_t bytes = kShortest; bytes <= kMostCacheProbeBytes && (bytes == kShortest || seconds() < until); bytes *= 2) {
    const double took = seconds_of_a_pass(pass, bytes, seconds, until);
    if (!std::isfinite(took)) return {};  // the clock is too coarse
    const double rate = static_cast<double>(bytes) / took;
    if (rate < kStillCached * found.bytes_per_second) return found;
    found = {std::max(found.bytes_per_second, rate), static_cast<double>(bytes)};
  }
  found.bytes = std::max(found.bytes, kAssumedBytes);  // the end of the cache was not reached
  return found;
}

double last_level_cache_bytes(const std::string& folder) {
  constexpr int kMostCaches = 16;
  double largest = 0;
  for (int index = 0; index < kMostCaches; ++index) {
    std::ifstream file(folder + "/index" + std::to_string(index) + "/size");
    double kilobytes = 0;
    char unit = 0;
    if (!(file >> kilobytes >> unit)) break;
    if (unit == 'K') largest = std::max(largest, kilobytes * 1024);
  }
  return largest;
}

SumPass::SumPass() {
  const std::size_t longest = kMostCacheProbeBytes / kOperands / sizeof(float);
  for (std::vector<float>* const vector : {&one_, &other_, &sum_}) vector->assign(longest, 1.0F);
}

void SumPass::operator()(std::uint64_t bytes) {
  const void* const sources[] = {one_.data(), other_.data()};
  const ReduceTarget target{sum_.data(), Store::cached};
  const std::size_t count = std::min<std::size_t>(bytes / kOperands / sizeof(float), sum_.size());
  reduce_function(DataType::float32, ReduceOp::sum)({sources, 2, &target, 1, count, 0, nullptr, 1});
}

}  // namespace seto
