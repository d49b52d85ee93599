#include "bench/common/gpu.h"

#include <utility>

namespace seto::bench {
namespace {

cuda::DevicePointer address(const std::byte* memory) { return reinterpret_cast<cuda::DevicePointer>(memory); }

}  // namespace

Result<std::unique_ptr<Gpu>> Gpu::open(int rank) {
  SETO_ASSIGN(std::unique_ptr<const cuda::Driver> driver, cuda::Driver::open());
  std::unique_ptr<Gpu> made(new Gpu(std::move(driver)));
  SETO_TRY(made->start(rank));
  return made;
}

// The context is never released: it ends with the process.
Status Gpu::start(int rank) {
  SETO_TRY(driver_->init(0));
  int count = 0;
  SETO_TRY(driver_->device_get_count(&count));
  if (count == 0) return failure(Code::unavailable, "there is no GPU");
  cuda::Context context = nullptr;
  SETO_TRY(driver_->device_primary_ctx_retain(&context, rank % count));
  SETO_TRY(driver_->ctx_set_current(context));
  return driver_->stream_create_with_priority(&stream_, cuda::kStreamNonBlocking, 0);
}

Gpu::~Gpu() {
  static_cast<void>(drop_recording());
  if (stream_ != nullptr) static_cast<void>(driver_->stream_destroy.code(stream_));
}

Result<std::byte*> Gpu::allocate(std::size_t size) const {
  cuda::DevicePointer pointer = 0;
  SETO_TRY(driver_->mem_alloc(&pointer, size));
  return reinterpret_cast<std::byte*>(pointer);
}

Status Gpu::free(std::byte* memory) const { return driver_->mem_free(address(memory)); }

Status Gpu::copy_in(std::byte* memory, const std::byte* from, std::size_t size) const {
  SETO_TRY(driver_->memcpy_htod_async(address(memory), from, size, stream_));
  return synchronize();
}

Status Gpu::copy_out(std::byte* to, const std::byte* memory, std::size_t size) const {
  SETO_TRY(driver_->memcpy_dtoh_async(to, address(memory), size, stream_));
  return synchronize();
}

Status Gpu::fill(std::byte* memory, int byte, std::size_t size) const {
  SETO_TRY(driver_->memset_d8_async(address(memory), static_cast<unsigned char>(byte), size, stream_));
  return synchronize();
}

// Other threads may allocate meanwhile, which a capture of the global mode forbids.
Status Gpu::begin_recording() {
  SETO_TRY(drop_recording());
  return driver_->stream_begin_capture(stream_, cuda::CaptureMode::thread_local_only);
}

Status Gpu::end_recording() {
  cuda::Graph graph = nullptr;
  SETO_TRY(driver_->stream_end_capture(stream_, &graph));
  const Status made = driver_->graph_instantiate(&recording_, graph, 0);
  SETO_TRY(driver_->graph_destroy(graph));
  return made;
}

Status Gpu::drop_recording() {
  if (recording_ == nullptr) return {};
  return driver_->graph_exec_destroy(std::exchange(recording_, nullptr));
}

Status Gpu::synchronize() const { return driver_->stream_synchronize(stream_); }

}  // namespace seto::bench
