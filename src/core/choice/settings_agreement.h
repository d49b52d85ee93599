#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"

namespace seto {

// The settings by which a rank plans its calls, as it tells them to the others: a line for each that is not as it comes, or none.
std::string planning_settings(const Config& config);

// Ranks that differ in one would plan the same call differently. The text names the setting, two ranks and both values.
Status check_same(const std::vector<std::string>& settings_of_ranks);

}  // namespace seto
