#pragma once

#include <string>

namespace seto::command {

struct InfoOptions {
  std::string topic;
  bool json = false;
};

struct ExplainOptions {
  std::string collective;
  std::string size;
  int ranks = 0;
  int nodes = 0;
  int sites = 0;
  bool json = false;
};

// Print to standard output; a failure to standard error. Give the exit status.
int run(const InfoOptions& options);
int run(const ExplainOptions& options);

}  // namespace seto::command
