#pragma once

#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// The kernel of this machine lists RDMA devices. Where it lists none, opening the library would only cost time.
[[nodiscard]] bool has_devices();

// The verbs of this machine, opened once in a process and never closed. A failure: there is no library for the devices.
[[nodiscard]] Result<Verbs*> verbs_of_process();

// Only for tests: these verbs are those of the machine from now on, and it has devices. Null: no longer. They outlive what is
// opened with them.
void replace_verbs_of_process(Verbs* verbs);

}  // namespace seto::rdma
