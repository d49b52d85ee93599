#pragma once

#include "src/base/status.h"

namespace seto {

// From now on, this signal adds 1 to the eventfd (in this process, not in forked children), and then calls the previous handler.
// Call once per process: a handler cannot be removed while another one chains to it.
Status add_to_on_signal(int eventfd, int signal);

}  // namespace seto
