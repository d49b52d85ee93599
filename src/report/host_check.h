#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/report/explain.h"
#include "src/report/host_facts.h"

namespace seto {

// One result of the host check.
struct Finding {
  enum class Level : std::uint8_t { ok, warn, bad };

  std::string topic;
  Level level = Level::ok;
  std::string found;
  std::string fix;    // what to do; empty if all is well
  bool same = false;  // `found` should be equal on all hosts of a job
};
std::string_view name_of(Finding::Level level);

// The job that will run on the host.
struct Load {
  int ranks_here = 1;
  int ranks = 1;        // of the whole job
  int tcp_sockets = 2;  // for each rank that is reached over TCP
  bool only_tcp = false;
};
// `ranks_here` 0 means one for each usable core. The rest comes from the settings and the environment of a launcher; without a
// launcher the whole job runs on this host.
Load load_of(const Config& config, const char* const* environment, int ranks_here);

// Pure function.
std::vector<Finding> examine(const HostFacts& facts, const Load& load);

int count_bad(const std::vector<Finding>& findings);
std::string findings_text(const std::vector<Finding>& findings, ReportFormat format);

}  // namespace seto
