#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/common/types.h"

namespace seto::bench {

struct IterationStatistics {
  double min_us = 0;
  double max_us = 0;
  double mean_us = 0;
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double deviation_us = 0;
  double variation = 0;            // deviation / mean
  std::vector<double> slowest_us;  // for each iteration, of the slowest rank
};
// Statistics over the iterations of the slowest rank's time; percentiles are nearest-rank.
IterationStatistics statistics_of(std::vector<double> slowest_us);

struct Placement {
  double time_us = 0;
  double algorithm_bandwidth = 0;  // GB/s, 1e9
  double bus_bandwidth = 0;
  std::optional<std::uint64_t> wrong;  // empty: not checked
  std::optional<IterationStatistics> iterations;
  std::string travelled_in;  // the codec that was used, "none", or empty if unknown
  double tolerance = 0;      // the largest error that its check accepts; 0: exact
  double largest = 0;        // where that is not 0: the largest magnitude that any rank put in
};

struct ResultRow {
  std::uint64_t size;   // the larger of the two buffers, bytes
  std::uint64_t count;  // argument of the call
  std::string type;
  std::string op;            // "none" for collectives that do not reduce
  int root;                  // -1 for collectives without a root
  std::string codec;         // the permitted codec
  std::string travelled_in;  // the codec that was used; "none": exact; empty: unknown
  std::uint64_t wire_bytes;  // bytes of such a tensor in that codec
  std::string timestamp;
  Placement out_of_place;
  std::optional<Placement> in_place;  // empty: the collective has no such form
};

struct Totals {
  std::uint64_t wrong = 0;
  double average_bus_bandwidth = 0;
};
Totals totals_of(const std::vector<ResultRow>& rows);

// "2026-01-31 12:00:00", local time.
std::string timestamp_now();

}  // namespace seto::bench
