#pragma once

#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/report/explain.h"

namespace seto {

class Communicator;

// A description of the library and of the machine. `topic` is one of kInfoTopics, or empty for all. `version` is the release.
Result<std::string> info(std::string_view topic, std::string_view version, const Config& config, ReportFormat format);

// One line about a communicator: the number of ranks, their nodes and sites, how this rank reaches the others, and the constants
// of its choice.
std::string makeup_of(const Communicator& communicator);

}  // namespace seto
