#pragma once

namespace seto {

// A barrier that one thread makes all others pass, so that those need none of their own: a data path stores and then looks with
// no fence between, and who is rare pays for both.

// Makes every core that runs a thread of this process, or of another one that asked for it, pass a full barrier. False: the
// kernel has none, and only this thread has passed one.
bool pass_barrier_on_every_core();

// Asks for it on behalf of this process. True: pass_barrier_on_every_core() will reach all its threads.
bool every_core_can_be_reached();

}  // namespace seto
