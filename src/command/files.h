#pragma once

#include <string>

namespace seto::command {

// Reads a whole file, "-" for standard input. False if it cannot be read; errno is set.
bool read_file(const std::string& path, std::string& text);
// Writes a whole file, "-" for standard output. False if it cannot be written; errno is set.
bool write_file(const std::string& path, const std::string& text);

}  // namespace seto::command
