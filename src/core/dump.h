#pragma once

#include <string>

#include "src/core/communicator.h"
#include "src/core/explain.h"

namespace seto {

// The state of one communicator, for a person who asks why it waits: how far this rank is, what became of the others and what
// each said last, the first failure. Any thread, while others operate: figures may be of slightly different moments.
std::string dump(const Communicator& communicator, ReportFormat format);

}  // namespace seto
