#pragma once

namespace seto {

// A memory barrier that one thread forces upon all other threads. So the data path needs no fence between its store and the load
// after it: the rare thread that is about to sleep pays for both sides.

// Makes every core that runs a thread of this process, or of another process that registered, execute a full barrier. Returns
// false if the kernel does not offer it; then only the calling thread has executed one.
bool pass_barrier_on_every_core();

// Registers this process. Returns true if pass_barrier_on_every_core() will reach all its threads.
bool every_core_can_be_reached();

}  // namespace seto
