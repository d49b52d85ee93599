#pragma once

namespace seto::testing {

// How many times longer than usual this machine takes now to send a byte to another process and back: at least 1. Other virtual
// machines change that by a factor of three within seconds. So a limit of time that many small messages need is multiplied by it.
double slowness();

}  // namespace seto::testing
