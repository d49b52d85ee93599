#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"

namespace seto {

// The answer of one process at its StatusSocket.
struct StatusAnswer {
  int pid = 0;
  std::string text;
  Status failure;  // why there is no text
};

// The abstract names of status sockets in a table in the form of /proc/net/unix.
[[nodiscard]] std::vector<std::string> status_sockets_in(std::string_view table);

// The process id in the name of a status socket; 0: there is none.
[[nodiscard]] int pid_in_socket_name(std::string_view name);

// Asks all processes of this user in this network namespace at the same time, or one of them (`pid` above 0). A process that has
// not answered at the deadline is part of the result, with that failure; one of another user is not.
[[nodiscard]] Result<std::vector<StatusAnswer>> ask_for_status(int pid, Deadline until);

}  // namespace seto
