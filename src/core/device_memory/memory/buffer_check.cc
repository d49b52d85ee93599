#include "src/core/device_memory/memory/buffer_check.h"

#include <iterator>

namespace seto {
namespace {

using cuda::DevicePointer;
using cuda::DriverCode;
using cuda::PointerAttribute;

struct Facts {
  std::uint32_t type = 0;  // MemoryType; 0: the driver does not know the address
  std::uint32_t is_managed = 0;
  int device = -1;
};

Result<Facts> facts_of(const cuda::Driver& driver, DevicePointer pointer) {
  Facts facts;
  PointerAttribute attributes[] = {PointerAttribute::memory_type, PointerAttribute::is_managed, PointerAttribute::device};
  void* into[] = {&facts.type, &facts.is_managed, &facts.device};
  SETO_TRY(driver.pointer_get_attributes(static_cast<unsigned>(std::size(attributes)), attributes, into, pointer));
  return facts;
}

Status check_place(const GpuContext& gpu, DevicePointer pointer, const char* name) {
  const auto* const shown = reinterpret_cast<const void*>(pointer);
  SETO_ASSIGN(const Facts facts, facts_of(gpu.driver(), pointer));
  if (facts.type == 0)
    return failure(
        Code::invalid_argument,
        "%s: %p is no device memory: it is ordinary host memory, or it was freed. This communicator works on memory of "
        "GPU %d (cudaMalloc); one for host memory is made with memory = setoMemoryHost",
        name, shown, gpu.device());
  if (facts.is_managed != 0)
    return failure(Code::invalid_argument, "%s: %p is managed memory, which is not in this version: use cudaMalloc", name, shown);
  if (facts.type != static_cast<std::uint32_t>(cuda::MemoryType::device))
    return failure(
        Code::invalid_argument,
        "%s: %p is host memory, but this communicator works on memory of GPU %d: use cudaMalloc, or a communicator with "
        "memory = setoMemoryHost",
        name, shown, gpu.device());
  if (facts.device == gpu.device()) return {};
  return failure(Code::invalid_argument, "%s: %p is memory of GPU %d, but this rank uses GPU %d", name, shown, facts.device,
                 gpu.device());
}

// A buffer may lie in several allocations that follow each other, as those of an allocator by virtual addresses do.
Status check_buffer(const GpuContext& gpu, const void* buffer, std::uint64_t bytes, const char* name) {
  if (bytes == 0) return {};
  const auto begin = reinterpret_cast<DevicePointer>(buffer);
  for (DevicePointer at = begin; at < begin + bytes;) {
    if (at != begin) {
      SETO_ASSIGN(const Facts facts, facts_of(gpu.driver(), at));
      if (facts.type == 0)
        return failure(Code::invalid_argument, "%s: the call needs %llu bytes at %p, but the allocation ends after %llu", name,
                       static_cast<unsigned long long>(bytes), buffer, static_cast<unsigned long long>(at - begin));
    }
    SETO_TRY(check_place(gpu, at, name));
    DevicePointer base = 0;
    std::size_t size = 0;
    SETO_TRY(gpu.driver().mem_get_address_range(&base, &size, at));
    if (base + size <= at) return failure(Code::internal, "cuMemGetAddressRange gives a range without its address");
    at = base + size;
  }
  return {};
}

}  // namespace

Status check_buffers(const GpuContext& gpu, const Call& call, Rank rank, int ranks) {
  SETO_TRY(check_buffer(gpu, call.input, input_bytes(call, rank, ranks), "sendbuff"));
  if (call.output == call.input && input_bytes(call, rank, ranks) >= output_bytes(call, rank, ranks)) return {};
  return check_buffer(gpu, call.output, output_bytes(call, rank, ranks), "recvbuff");
}

Status check_buffers(const GpuContext& gpu, const Transfer& transfer) {
  const std::uint64_t bytes = transfer.count * size_of(transfer.type);
  if (transfer.direction == LocalTransfer::Direction::send) return check_buffer(gpu, transfer.source, bytes, "sendbuff");
  return check_buffer(gpu, transfer.target, bytes, "recvbuff");
}

Status check_stream(const GpuContext& gpu, cuda::Stream stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= cuda::kPerThreadStream) return {};
  cuda::Context context = nullptr;
  const DriverCode code = gpu.driver().stream_get_ctx.code(stream, &context);
  if (code != DriverCode::success)
    return failure(Code::invalid_argument, "stream: %p is not a CUDA stream: %s", static_cast<void*>(stream),
                   std::string(gpu.driver().stream_get_ctx.failed(code).text()).c_str());
  if (context == gpu.handle()) return {};
  return failure(Code::invalid_argument,
                 "stream: %p is of another context than this communicator: make it while GPU %d is current",
                 static_cast<void*>(stream), gpu.device());
}

Status check_host_buffers(const cuda::Driver& driver, const Call& call) {
  const auto check = [&](const void* buffer, const char* name) -> Status {
    if (buffer == nullptr) return {};
    const Result<Facts> facts = facts_of(driver, reinterpret_cast<DevicePointer>(buffer));
    const bool is_device =
        facts.ok() && facts.value().is_managed == 0 && facts.value().type == static_cast<std::uint32_t>(cuda::MemoryType::device);
    if (!is_device) return {};
    return failure(Code::invalid_argument,
                   "%s: %p is memory of GPU %d, but this communicator works on host memory: make one with memory = "
                   "setoMemoryDevice",
                   name, buffer, facts.value().device);
  };
  SETO_TRY(check(call.input, "sendbuff"));
  return check(call.output, "recvbuff");
}

}  // namespace seto
