#pragma once

namespace seto {

// Whether a pass over memory beyond the cache is faster if it asks for what comes next by itself. A matter of the machine's own
// prefetchers, so it is decided by processor family as measured; of what was not measured it is not so.
// AMD family 1Ah (Zen 5): 64 MiB of fp32 to bf16 20 GB/s without, 25 with. 19h (Zen 4): fp16, bf16, int8 15.5, 14.5, 14.6 GB/s
// without, 10.4, 12.2, 10.4 with; one after the other on a noisy machine, so no more than that it did not gain.
[[nodiscard]] bool gains_by_reading_ahead();

}  // namespace seto
