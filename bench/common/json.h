#pragma once

#include <string>
#include <vector>

#include "bench/common/options.h"
#include "bench/common/result.h"
#include "bench/common/table.h"

namespace seto::bench {

struct Report {
  Heading heading;
  std::vector<std::string> arguments;
  std::string start_time;
  std::string end_time;
  std::vector<ResultRow> rows;
};

// The document of nccl-tests, version 3. An empty string is success, else what went wrong.
std::string json_text(const Report& report, const Options& options);
// Whether write_file can do it, said before a long run. Changes nothing.
[[nodiscard]] std::string check_writable(const std::string& path);
[[nodiscard]] std::string write_file(const std::string& path, const std::string& text);

}  // namespace seto::bench
