#pragma once

namespace seto::testing {

// How many times longer than usual four processes take now that make memory and sockets on this machine: from 1 to 2. Other
// virtual machines change that by a factor of two within minutes, so a limit of time for such work is multiplied by it.
double slowness();

}  // namespace seto::testing
