#include <poll.h>

#include <cstdio>
#include <string>

#include "include/seto/seto.h"
#include "src/command/commands.h"
#include "src/command/output.h"

namespace seto::command {
namespace {

// Says how to go on where nothing was found.
int told_of_nothing(const StatusOptions& options) {
  const std::string which = options.pid > 0
                                ? "process " + std::to_string(options.pid) + " has no communicator of Seto, or is of another user"
                                : "no process of this user on this host has a communicator of Seto";
  std::fprintf(stderr, "seto: %s\n", which.c_str());
  return kFailed;
}

// A JSON text is one line, so that a program can read one after another.
int show(const std::string& now, const std::string& before, bool json) {
  return print([&](char* where, size_t capacity, size_t* size) {
    return setoStatusReport(now.c_str(), before.empty() ? nullptr : before.c_str(), format(json), where, capacity, size);
  });
}

}  // namespace

int run(const StatusOptions& options) {
  std::string before;
  for (;;) {
    int found = 0;
    int status = 0;
    const std::string now =
        ask([&](char* where, size_t capacity, size_t* size) { return setoStatus(options.pid, where, capacity, size, &found); },
            status);
    if (status != 0) return status;
    if (found == 0) return before.empty() ? told_of_nothing(options) : 0;  // the watched processes have ended
    if (!before.empty() && !options.json) status = put("\n");
    if (status == 0) status = show(now, before, options.json);
    if (status != 0 || options.watch_s <= 0) return status;
    std::fflush(stdout);
    (void)poll(nullptr, 0, static_cast<int>(options.watch_s * 1000));
    before = now;
  }
}

}  // namespace seto::command
