#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/core/explain.h"
#include "src/core/host_facts.h"

namespace seto {

// One line of a check-up.
struct Finding {
  enum class Level : std::uint8_t { ok, warn, bad };

  std::string topic;
  Level level = Level::ok;
  std::string found;
  std::string fix;    // what to do; empty where it is well
  bool same = false;  // hosts of one job should agree on `found`
};
std::string_view name_of(Finding::Level level);

// What the host is to run.
struct Load {
  int ranks_here = 1;
  int ranks = 1;        // of the whole job
  int tcp_sockets = 2;  // to a rank that TCP reaches
  bool only_tcp = false;
};
// `ranks_here`: 0: one for each usable core. The rest is what the settings and the environment of a launcher say; no launcher:
// the job is here.
Load load_of(const Config& config, const char* const* environment, int ranks_here);

// Pure.
std::vector<Finding> examine(const HostFacts& facts, const Load& load);

int count_bad(const std::vector<Finding>& findings);
std::string findings_text(const std::vector<Finding>& findings, ReportFormat format);

}  // namespace seto
