#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace seto::torch_tests {

// Makes the allocator that of torch's device `cuda`.
void register_memory();
[[nodiscard]] c10::Allocator* memory();
// The memory is not reused before the work that is in the stream when it is freed has ended.
void record_use(const void* pointer, const c10::Stream& stream);

}  // namespace seto::torch_tests
