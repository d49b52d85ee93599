#include "bench/common/result.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

namespace seto::bench {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

IterationStatistics statistics_of(std::vector<double> slowest_us) {
  IterationStatistics result;
  if (slowest_us.empty()) return result;
  std::vector<double> sorted = slowest_us;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  result.min_us = sorted.front();
  result.max_us = sorted.back();
  result.mean_us = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  result.p50_us = percentile(sorted, 0.50);
  result.p95_us = percentile(sorted, 0.95);
  result.p99_us = percentile(sorted, 0.99);
  double squares = 0;
  for (const double time : sorted) squares += (time - result.mean_us) * (time - result.mean_us);
  result.deviation_us = std::sqrt(squares / count);
  result.variation = result.mean_us > 0 ? result.deviation_us / result.mean_us : 0;
  result.slowest_us = std::move(slowest_us);
  return result;
}

Totals totals_of(const std::vector<ResultRow>& rows) {
  Totals totals;
  double sum = 0;
  std::size_t count = 0;
  const auto add = [&](const Placement& placement) {
    totals.wrong += placement.wrong.value_or(0);
    sum += placement.bus_bandwidth;
    ++count;
  };
  for (const ResultRow& row : rows) {
    add(row.out_of_place);
    if (row.in_place) add(*row.in_place);
  }
  if (count > 0) totals.average_bus_bandwidth = sum / static_cast<double>(count);
  return totals;
}

std::string timestamp_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

}  // namespace seto::bench
