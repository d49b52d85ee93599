#pragma once

#include <cstdint>
#include <string>

#include "src/core/communicator/communicator.h"
#include "src/core/explain.h"

namespace seto {

// Of the JSON form. Grows when a reader of an older one would misunderstand; keys that are added do not count.
inline constexpr std::uint64_t kDumpSchema = 1;

// The state of one communicator, for a person who asks why it waits: how far this rank is, what became of the others and what
// each said last, the first failure, and the last calls with what they wait for. Any thread, while others operate: figures may be
// of slightly different moments. Takes some 20 ms where a call is under way that does not say what it waits for, and up to 1 s
// just after a failure.
std::string dump(const Communicator& communicator, ReportFormat format);

}  // namespace seto
