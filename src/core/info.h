#pragma once

#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/core/communicator/communicator.h"
#include "src/core/explain.h"

namespace seto {

// What the library says of itself and of the machine. topic: one of kInfoTopics, or empty for all. `version` is the release.
Result<std::string> info(std::string_view topic, std::string_view version, const Config& config, ReportFormat format);

// A communicator in one line: how many ranks, where they are, how this one reaches the others, by which constants it chooses.
std::string makeup_of(const Communicator& communicator);

}  // namespace seto
