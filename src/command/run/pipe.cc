#include "src/command/run/pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace seto::command {

Result<Pipe> open_pipe(const char* failing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_failure(Code::unavailable, "%s", failing);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Pipe> open_pipe_to_us(const char* failing) {
  SETO_ASSIGN(Pipe pipe, open_pipe(failing));
  fcntl(pipe.from.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

}  // namespace seto::command
