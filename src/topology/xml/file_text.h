#pragma once

#include <string>

#include "src/base/result.h"

namespace seto {

// The content of a topology file, up to one byte more than its reader accepts. The text of an error names the file and the
// reason.
Result<std::string> topology_file_text(const std::string& path);

}  // namespace seto
