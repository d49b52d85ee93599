#pragma once

#include <string>

namespace seto::command {

// The whole of a file, "-" for standard input. False, with errno: it cannot be read.
bool read_file(const std::string& path, std::string& text);

}  // namespace seto::command
