#pragma once

#include <cstddef>
#include <string>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/explain.h"

namespace seto {

// Every codec: what it costs, how wrong it may be, what becomes of what is no ordinary number; and how fast this machine is at
// it, which is measured: some 0.2 s in all.
std::string codecs_report(ReportFormat format);

// What each of those that take the type would make of these numbers: bytes, errors, signal to noise. Numbers that are not finite
// are counted, and no part of an error.
Result<std::string> codec_check(const void* values, DataType type, std::size_t count, ReportFormat format);

}  // namespace seto
