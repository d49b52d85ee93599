#pragma once

#include <string>
#include <vector>

#include "bench/common/options.h"
#include "bench/common/result.h"

namespace seto::bench {

// The texts of nccl-tests, so that parsers of its output work. Each text ends in a newline.
struct Heading {
  std::string program;
  int header_version;
  int library_version;
  std::string host;
  std::string machine;             // processor, for the "Using devices" lines
  std::vector<long> process_ids;   // by rank
  std::vector<std::string> hosts;  // by rank
};
std::string heading_text(const Heading& heading, const Options& options);
std::string columns_text(const Options& options);
std::string row_text(const ResultRow& row, const Options& options);
// States how encoded sums were checked, as a comment; empty if they were exact or not checked.
std::string tolerance_text(const ResultRow& row);
// The error that is accepted, for each unit of the largest number that any rank put in. 0: exact.
double relative_tolerance(const ResultRow& row);
std::string conclusion_text(const std::string& program, const Totals& totals);

}  // namespace seto::bench
