#pragma once

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto::command {

// Neither end is inherited by children.
struct Pipe {
  Fd from;
  Fd to;
};

// `failing` is for the error text: what cannot be done without the pipe.
[[nodiscard]] Result<Pipe> open_pipe(const char* failing);
// The same, but the reading end, which this process keeps, does not block; the writer may block.
[[nodiscard]] Result<Pipe> open_pipe_to_us(const char* failing);

}  // namespace seto::command
