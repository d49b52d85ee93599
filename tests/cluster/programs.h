#pragma once

#include <string>

#include "tests/launch/program.h"

namespace seto::testing {

// What users run, as they type it: by its place in the build directory, with words of a shell. `variables`: "NAME=value ...".
inline Ended run_program(const std::string& place, const std::string& arguments, const std::string& variables = "") {
  std::string line = "env " + variables;
  return run({"sh", "-c", line.append(" '").append(built(place)).append("' ").append(arguments)});
}

inline Ended seto(const std::string& arguments, const std::string& variables = "") {
  return run_program("seto", arguments, variables);
}

}  // namespace seto::testing
