#include "src/device/cuda/direct_access.h"

namespace seto::cuda {

DirectFlush flush_for(int write_order, int flush_options) {
  if (write_order >= static_cast<int>(DirectWriteOrder::owner)) return DirectFlush::none;
  return (flush_options & kDirectFlushByHost) != 0 ? DirectFlush::by_host : DirectFlush::impossible;
}

Result<DirectAccess> direct_access_of(const Driver& driver, DeviceNumber gpu) {
  int dma_buf = 0, order = 0, options = 0;
  SETO_TRY(driver.device_get_attribute(&dma_buf, DeviceAttribute::dma_buf, gpu));
  SETO_TRY(driver.device_get_attribute(&order, DeviceAttribute::gpu_direct_write_order, gpu));
  SETO_TRY(driver.device_get_attribute(&options, DeviceAttribute::gpu_direct_flush_options, gpu));
  return DirectAccess{dma_buf != 0, flush_for(order, options)};
}

Result<Fd> export_dma_buf(const Driver& driver, DevicePointer memory, std::size_t size) {
  int descriptor = -1;
  SETO_TRY(driver.mem_get_range_handle(&descriptor, memory, size, RangeHandleType::dma_buf, 0));
  return Fd(descriptor);
}

Status flush_direct_writes(const Driver& driver, DirectFlush flush) {
  if (flush == DirectFlush::none) return {};
  if (flush == DirectFlush::impossible)
    return failure(Code::unavailable, "the driver offers no flush of what other devices have written to this GPU");
  return driver.flush_direct_writes(DirectFlushTarget::current_context, DirectFlushScope::owner);
}

}  // namespace seto::cuda
