#pragma once

#include <cstddef>
#include <string>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/report/explain.h"

namespace seto {

// Describes every codec: its size, its errors, what it does with NaN, infinity, zero and denormals, and its speed on this
// machine. Measuring the speed takes some 0.2 s in all.
std::string codecs_report(ReportFormat format);

// Encodes and decodes these numbers with each codec that accepts the type, and reports bytes, errors and signal to noise. Numbers
// that are not finite are counted and left out of the errors.
Result<std::string> codec_check(const void* values, DataType type, std::size_t count, ReportFormat format);

}  // namespace seto
