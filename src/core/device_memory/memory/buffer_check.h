#pragma once

#include "src/core/call/collective_call.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/core/launch/point_to_point.h"

namespace seto {

// Checks the buffers of a call, which check() of room `call` has accepted, through the driver: each must be memory of this GPU,
// as far as the call reaches. The context is current. The text names the argument and says what to do.
Status check_buffers(const GpuContext& gpu, const Call& call, Rank rank, int ranks);
Status check_buffers(const GpuContext& gpu, const Transfer& transfer);

// Fails if the stream does not belong to this context. NULL, 1 and 2 are the default streams of any context.
Status check_stream(const GpuContext& gpu, cuda::Stream stream);
// Whether a stream that check_stream() accepts cannot take a call because of a capture: its own was invalidated, or it is the
// legacy stream and another one that it would wait for is being captured.
[[nodiscard]] inline bool is_refused_by_capture(const Status& of_capture) { return of_capture.code() == Code::invalid_usage; }

// For a host communicator in a process that uses GPUs: fails if the buffers are device memory, which the host cannot read.
Status check_host_buffers(const cuda::Driver& driver, const Call& call);

}  // namespace seto
