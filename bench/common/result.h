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
  std::vector<double> slowest_us;  // per iteration, the slowest rank
};
// Of the slowest rank's time in each iteration; percentiles are nearest-rank.
IterationStatistics statistics_of(std::vector<double> slowest_us);

struct Placement {
  double time_us = 0;
  double algorithm_bandwidth = 0;  // GB/s, 1e9
  double bus_bandwidth = 0;
  std::optional<std::uint64_t> wrong;  // nothing: not checked
  std::optional<IterationStatistics> iterations;
  std::string travelled_in;  // a codec, "none", or nothing where it is not known
};

struct ResultRow {
  std::uint64_t size;   // the larger of the two buffers, bytes
  std::uint64_t count;  // what the call takes
  std::string type;
  std::string op;            // "none" where nothing is reduced
  int root;                  // -1 where there is none
  std::string codec;         // that it might travel in
  std::string travelled_in;  // "none": exactly; empty: not known
  std::uint64_t wire_bytes;  // of such a tensor, as it travelled
  std::string timestamp;
  Placement out_of_place;
  std::optional<Placement> in_place;  // nothing: the collective has no such form
};

struct Totals {
  std::uint64_t wrong = 0;
  double average_bus_bandwidth = 0;
};
Totals totals_of(const std::vector<ResultRow>& rows);

// "2026-01-31 12:00:00", local time.
std::string timestamp_now();

}  // namespace seto::bench
