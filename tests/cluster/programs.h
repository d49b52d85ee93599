#pragma once

#include <string>

#include "tests/launch/program.h"

namespace seto::testing {

// Runs a program of the build directory with arguments in shell syntax. `variables` is "NAME=value ...".
inline Ended run_program(const std::string& place, const std::string& arguments, const std::string& variables = "") {
  std::string line = "env " + variables;
  return run({"sh", "-c", line.append(" '").append(built(place)).append("' ").append(arguments)});
}

inline Ended seto(const std::string& arguments, const std::string& variables = "") {
  return run_program("seto", arguments, variables);
}

}  // namespace seto::testing
