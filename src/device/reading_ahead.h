#pragma once

namespace seto {

// True if a pass over memory beyond the cache is faster with software prefetch. That depends on the processor's own prefetchers,
// so it is decided by processor family, as measured; it is false for families that were not measured. AMD family 1Ah (Zen 5): 64
// MiB of fp32 to bf16 20 GB/s without, 25 with. 19h (Zen 4): fp16, bf16, int8 15.5, 14.5, 14.6 GB/s without, 10.4, 12.2, 10.4
// with. These were measured one after the other on a noisy machine, so they only show that it gained nothing.
[[nodiscard]] bool gains_by_reading_ahead();

}  // namespace seto
