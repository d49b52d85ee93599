#pragma once

#include <string>
#include <vector>

#include "bench/common/options.h"
#include "bench/common/result.h"

namespace seto::bench {

// The texts of nccl-tests, so that what parses its output parses this. Each ends in a newline.
struct Heading {
  std::string program;
  int header_version;
  int library_version;
  std::string host;
  std::string machine;             // what ranks run on, for the "Using devices" lines
  std::vector<long> process_ids;   // per rank
  std::vector<std::string> hosts;  // per rank
};
std::string heading_text(const Heading& heading, const Options& options);
std::string columns_text(const Options& options);
std::string row_text(const ResultRow& row, const Options& options);
std::string conclusion_text(const std::string& program, const Totals& totals);

}  // namespace seto::bench
