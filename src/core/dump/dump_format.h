#pragma once

#include <cstdint>
#include <string>

#include "src/base/json_writer.h"
#include "src/core/record/flight_recorder.h"

namespace seto {

class Communicator;

// A call in words: "all_reduce of 1024 float32, sum".
std::string text_of(const RecordedCall::Parts& call);

// Version of the JSON form. Raised when a reader of the old form would misunderstand the new one; added keys do not count.
inline constexpr std::uint64_t kDumpSchema = 1;

// The state of one communicator, for a person who asks why it waits: the progress of this rank, the state and last report of
// every other rank, the first failure, and the last calls with what they wait for. Any thread, while others operate: figures may
// be from slightly different moments. Takes some 20 ms if a call under way does not report what it waits for, and up to 1 s just
// after a failure.
std::string dump(const Communicator& communicator, ReportFormat format);

}  // namespace seto
