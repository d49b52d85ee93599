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

// The document of nccl-tests, version 3. Returns an empty string on success, else the error.
std::string json_text(const Report& report, const Options& options);
// Checks before a long run whether write_file() will succeed. Changes nothing.
[[nodiscard]] std::string check_writable(const std::string& path);
[[nodiscard]] std::string write_file(const std::string& path, const std::string& text);

}  // namespace seto::bench
