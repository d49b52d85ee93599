#pragma once

#include "src/base/status.h"

namespace seto {

// From now on, a signal of this number adds to the eventfd, in this process and in no child of it, and then goes to the handler
// that was there before. Once in a process: a handler cannot be taken away while another one chains to it.
Status add_to_on_signal(int eventfd, int signal);

}  // namespace seto
