#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"

namespace seto {

// The settings that decide how a rank plans its calls, as it sends them to the other ranks: a line for each setting that differs
// from its default.
std::string planning_settings(const Config& config);

// Fails if two ranks have different settings, since they would plan the same call differently. The text names the setting, two
// ranks and both values.
Status check_same(const std::vector<std::string>& settings_of_ranks);

}  // namespace seto
