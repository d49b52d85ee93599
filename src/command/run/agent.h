#pragma once

namespace seto::command {

// On another host, started by a remote shell of `seto run`: runs the ranks that it is told over standard input, and says over
// standard output what they write and how they end. Ends them when standard input does. Gives the exit status.
int run_agent();

}  // namespace seto::command
