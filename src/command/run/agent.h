#pragma once

namespace seto::command {

// Runs the ranks of one host for `seto run`, whose remote shell starts it there. It receives ranks to run over standard input,
// and reports their output and their ends over standard output. It ends the ranks when standard input closes. Returns the exit
// status.
int run_agent();

}  // namespace seto::command
