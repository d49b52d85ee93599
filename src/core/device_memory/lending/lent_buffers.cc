#include "src/core/device_memory/lending/lent_buffers.h"

#include <algorithm>

#include "src/core/device_memory/memory/device_allocations.h"

namespace seto {
namespace {

using cuda::DevicePointer;
using cuda::PointerAttribute;
using kernels::Address;

constexpr std::size_t kLine = 256;  // addresses keep their place in a line, on which the speed of passes depends

}  // namespace

Result<const char*> obstacle_in(const cuda::Driver& driver, const BufferRange& range) {
  for (Address at = range.begin; at < range.end();) {
    if (const auto ours = DeviceAllocations::of_process().find(at)) {
      at = ours->begin + ours->size;
      continue;
    }
    std::uint32_t is_plain = 0;
    DevicePointer pool = 0;
    PointerAttribute attributes[] = {PointerAttribute::is_legacy_ipc_capable, PointerAttribute::memory_pool};
    void* into[] = {&is_plain, &pool};
    SETO_TRY(driver.pointer_get_attributes(2, attributes, into, at));
    if (pool != 0) return "it is memory of a pool (cudaMallocAsync)";
    if (is_plain == 0) return "it is memory at virtual addresses (cuMemMap, expandable segments)";
    DevicePointer base = 0;
    std::size_t size = 0;
    SETO_TRY(driver.mem_get_address_range(&base, &size, at));
    at = base + size;
  }
  return nullptr;
}

Result<CallBuffers> lendable_buffers(const Call& call, const CallSizes& sizes, const LendingRules& rules) {
  const BufferRange input{reinterpret_cast<Address>(call.input), sizes.input};
  const BufferRange output{reinterpret_cast<Address>(call.output), sizes.output};
  CallBuffers buffers{input.begin, output.begin, {}, {}, nullptr};
  SETO_ASSIGN(const char* const of_input, rules.obstacle(input));
  SETO_ASSIGN(const char* const of_output, rules.obstacle(output));
  buffers.copied_because = of_input != nullptr ? of_input : of_output;
  if (buffers.copied_because == nullptr) return buffers;
  // In place, the copies lie in each other as the buffers do.
  const bool in_place = input.meets(output);
  const Address first = in_place ? std::min(input.begin, output.begin) : input.begin;
  const Address last = in_place ? std::max(input.end(), output.end()) : input.end();
  const std::size_t shared = (last - first + first % kLine + kLine - 1) / kLine * kLine;
  SETO_ASSIGN(const Address copy, rules.memory(shared + (in_place ? 0 : output.size + kLine)));
  buffers.input = copy + first % kLine + (input.begin - first);
  buffers.output = in_place ? copy + first % kLine + (output.begin - first) : copy + shared + output.begin % kLine;
  if (input.size > 0) buffers.before.push_back({buffers.input, input.begin, input.size});
  if (output.size > 0) buffers.after.push_back({output.begin, buffers.output, output.size});
  return buffers;
}

}  // namespace seto
