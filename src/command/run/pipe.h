#pragma once

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto::command {

// Neither end is inherited.
struct Pipe {
  Fd from;
  Fd to;
};

// `failing`: what cannot be done without it, for the message.
[[nodiscard]] Result<Pipe> open_pipe(const char* failing);
// The same, to be read to its end without blocking; whoever writes may block.
[[nodiscard]] Result<Pipe> open_pipe_to_us(const char* failing);

}  // namespace seto::command
