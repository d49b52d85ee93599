#include "src/core/device_memory/gpu_context.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/codec/codec.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/kernel_images.h"
#include "src/topology/discovery/discover.h"

namespace seto {
namespace {

using cuda::DriverCode;

constexpr std::uint64_t kMostMsForPaths = 1'000;  // NVML takes milliseconds, unless a GPU has failed

// Global state of the process, never destroyed: communicators may outlive static objects.
struct Shared {
  std::mutex mutex;
  std::unique_ptr<const cuda::Driver> driver;
  std::map<int, std::weak_ptr<GpuContext>> contexts;  // by device
};

std::atomic<const cuda::Driver*> opened{nullptr};

Shared& shared() {
  static auto* const only = new Shared;
  return *only;
}

bool takes_codecs(DataType type) {
  for (int codec = 0; codec < kCodecCount; ++codec)
    if (encodes(static_cast<Codec>(codec), type)) return true;
  return false;
}

// A thread has no context either if its program has ignored that cudaSetDevice failed.
std::string why_without_context(const cuda::Driver& driver) {
  int count = 0;
  if (driver.device_get_count.code(&count) != DriverCode::success) return "";
  for (int device = 0; device < count; ++device) {
    int mode = 0;
    if (driver.device_get_attribute.code(&mode, cuda::DeviceAttribute::compute_mode, device) != DriverCode::success) continue;
    if (static_cast<cuda::ComputeMode>(mode) == cuda::ComputeMode::shared) continue;
    return ". GPU " + std::to_string(device) +
           " may have refused one: its compute mode lets one process use it, or none (nvidia-smi -q -d COMPUTE shows it; "
           "nvidia-smi -c DEFAULT as root lets processes share)";
  }
  return "";
}

}  // namespace

Result<const cuda::Driver*> process_driver() {
  const std::lock_guard lock(shared().mutex);
  if (shared().driver == nullptr) {
    SETO_ASSIGN(shared().driver, cuda::Driver::open());
    opened.store(shared().driver.get(), std::memory_order_release);
  }
  return shared().driver.get();
}

const cuda::Driver* opened_driver() { return opened.load(std::memory_order_acquire); }

bool driver_is_loaded() {
  void* const library = dlopen(cuda::kDriverLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  dlclose(library);
  return true;
}

Result<std::shared_ptr<GpuContext>> GpuContext::of_device(int device) {
  SETO_ASSIGN(const cuda::Driver* const driver, process_driver());
  const std::lock_guard lock(shared().mutex);
  std::weak_ptr<GpuContext>& known = shared().contexts[device];
  if (std::shared_ptr<GpuContext> alive = known.lock(); alive != nullptr) return alive;
  std::shared_ptr<GpuContext> made(new GpuContext(*driver, device));
  SETO_TRY(made->open());
  known = made;
  return made;
}

Result<std::shared_ptr<GpuContext>> GpuContext::of_thread() {
  SETO_ASSIGN(const cuda::Driver* const driver, process_driver());
  cuda::Context current = nullptr;
  const DriverCode code = driver->ctx_get_current.code(&current);
  if (code != DriverCode::success && code != DriverCode::not_initialized) return driver->ctx_get_current.failed(code);
  if (current == nullptr)
    return failure(Code::invalid_usage,
                   "no CUDA context is current in the thread that makes the communicator: call "
                   "cudaSetDevice (or cuCtxSetCurrent) first, or use host memory%s",
                   why_without_context(*driver).c_str());
  cuda::DeviceNumber device = 0;
  SETO_TRY(driver->ctx_get_device(&device));
  SETO_ASSIGN(std::shared_ptr<GpuContext> gpu, of_device(device));
  if (gpu->handle() == current) return gpu;
  return failure(Code::invalid_usage,
                 "the current CUDA context of GPU %d is not its primary context, which alone is supported: use "
                 "cuDevicePrimaryCtxRetain or cudaSetDevice",
                 device);
}

Status GpuContext::open() {
  SETO_TRY(driver_.device_primary_ctx_retain(&handle_, device_));
  return driver_.device_get_uuid(&uuid_, device_);
}

GpuContext::~GpuContext() {
  modules_.reset();
  if (plain_memory_ != 0) {
    const ContextScope scope(*this);
    if (scope.status().ok()) static_cast<void>(driver_.mem_free.code(plain_memory_));
  }
  if (handle_ != nullptr) static_cast<void>(driver_.device_primary_ctx_release.code(device_));
}

Status GpuContext::load_kernels(Rank rank, Deadline until) {
  const std::uint64_t begin_ns = monotonic_ns();
  SETO_TRY(load_kernels());
  if (!until.passed() || until.stopped()) return {};
  return failure(Code::timeout,
                 "rank %d loaded the kernels on GPU %d for %llu ms, longer than the init may take: raise SETO_INIT_TIMEOUT_MS "
                 "(initTimeoutMs)",
                 rank, device_, static_cast<unsigned long long>((monotonic_ns() - begin_ns) / 1'000'000));
}

Status GpuContext::load_kernels() {
  const std::lock_guard lock(mutex_);
  if (modules_ != nullptr) return {};
  const ContextScope scope(*this);
  SETO_TRY(scope.status());
  SETO_ASSIGN(std::unique_ptr<const cuda::KernelModules> modules, cuda::KernelModules::load(driver_, kernels::kernel_images()));
  most_threads_ = static_cast<int>(kernels::kMostThreads);
  for (int type = 0; type < kDataTypeCount; ++type) {
    const auto index = static_cast<std::size_t>(type);
    const std::string name(name_of(static_cast<DataType>(type)));
    SETO_ASSIGN(plain_[index], find(*modules, "seto_run_" + name));
    if (!takes_codecs(static_cast<DataType>(type))) continue;
    SETO_ASSIGN(coded_[index], find(*modules, "seto_run_coded_" + name));
  }
  SETO_ASSIGN(transfers_, find(*modules, "seto_run_transfers"));
  SETO_ASSIGN(multicast_, find(*modules, "seto_run_multicast"));
  modules_ = std::move(modules);
  return {};
}

Result<cuda::DevicePointer> GpuContext::plain_memory() {
  const std::lock_guard lock(mutex_);
  if (plain_memory_ == 0) SETO_TRY(driver_.mem_alloc(&plain_memory_, kPlainMemory));
  return plain_memory_;
}

Result<cuda::Kernel> GpuContext::find(const cuda::KernelModules& modules, const std::string& name) {
  SETO_ASSIGN(const cuda::LoadedKernel found, modules.find(name.c_str(), kWarp));
  most_threads_ = std::min(most_threads_, found.most_threads);
  return found.kernel;
}

const GpuPaths& GpuContext::paths(Deadline until) {
  std::call_once(asked_paths_, [this, until] {
    std::array<char, 64> text{};
    if (driver_.device_get_pci_bus_id.code(text.data(), static_cast<int>(text.size()) - 1, device_) != DriverCode::success)
      return;
    const std::optional<PciAddress> address = parse_pci_address(text.data());
    if (!address) return;
    const TopologyHost host = discover_gpu_of_this_host(*address, until.sooner_ms(kMostMsForPaths));
    const std::vector<GpuPlace> gpus = gpus_of(host);
    if (!gpus.empty()) paths_ = paths_of(gpus.front());
  });
  return paths_;
}

Result<int> GpuContext::resident_blocks(int threads) const {
  const ContextScope scope(*this);
  SETO_TRY(scope.status());
  int multiprocessors = 0;
  SETO_TRY(driver_.device_get_attribute(&multiprocessors, cuda::DeviceAttribute::multiprocessor_count, device_));
  int fewest = 1 << 20;
  std::vector<cuda::Kernel> kernels(plain_.begin(), plain_.end());
  kernels.insert(kernels.end(), coded_.begin(), coded_.end());
  kernels.insert(kernels.end(), {transfers_, multicast_});
  for (const cuda::Kernel kernel : kernels) {
    if (kernel == nullptr) continue;
    int blocks = 0;
    SETO_TRY(driver_.occupancy_max_active_blocks(&blocks, kernel, threads, 0));
    fewest = std::min(fewest, blocks);
  }
  return fewest * multiprocessors;
}

std::string text_of(const cuda::DeviceUuid& uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

ContextScope::ContextScope(const GpuContext& gpu) : driver_(gpu.driver()) {
  status_ = driver_.ctx_get_current(&before_);
  if (!status_.ok()) return;
  status_ = driver_.ctx_set_current(gpu.handle());
  if (!status_.ok()) return;
  status_ = driver_.thread_exchange_capture_mode(&mode_);
  if (!status_.ok()) static_cast<void>(driver_.ctx_set_current.code(before_));
}

ContextScope::~ContextScope() {
  if (!status_.ok()) return;
  static_cast<void>(driver_.thread_exchange_capture_mode.code(&mode_));
  static_cast<void>(driver_.ctx_set_current.code(before_));
}

}  // namespace seto
