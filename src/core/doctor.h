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

// Pure. `ranks`: how many the host is to run.
std::vector<Finding> examine(const HostFacts& facts, int ranks);

int count_bad(const std::vector<Finding>& findings);
std::string findings_text(const std::vector<Finding>& findings, ReportFormat format);

}  // namespace seto
