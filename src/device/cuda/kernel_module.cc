#include "src/device/cuda/kernel_module.h"

#include <utility>

namespace seto::cuda {
namespace {

// Makes a context current until the end of a scope.
class CurrentContext final {
 public:
  CurrentContext(const Driver& driver, Context context) : driver_(driver) {
    current_ = driver.ctx_get_current.code(&before_) == DriverCode::success &&
               driver.ctx_set_current.code(context) == DriverCode::success;
  }
  ~CurrentContext() {
    if (current_) static_cast<void>(driver_.ctx_set_current.code(before_));
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  [[nodiscard]] bool ok() const { return current_; }

 private:
  const Driver& driver_;
  Context before_ = nullptr;
  bool current_ = false;
};

}  // namespace

KernelModules::KernelModules(const Driver& driver, const KernelImages& images, Context context)
    : driver_(driver), origin_(std::string(images.architectures) + ", " + images.origin), context_(context) {}

// Errors are not reported: if the context is gone, its modules are gone too.
KernelModules::~KernelModules() {
  const CurrentContext context(driver_, context_);
  if (!context.ok()) return;
  for (Module module : modules_) static_cast<void>(driver_.module_unload.code(module));
}

Result<std::unique_ptr<const KernelModules>> KernelModules::load(const Driver& driver, const KernelImages& images) {
  if (images.images.empty())
    return failure(Code::unavailable,
                   "the library has no GPU kernels (%s): build it where nvcc 13.0 or later is found; ./dev setup installs it",
                   images.origin);
  Context context = nullptr;
  SETO_TRY(driver.ctx_get_current(&context));
  if (context == nullptr) return driver.ctx_get_current.failed(DriverCode::invalid_context);
  std::unique_ptr<KernelModules> made(new KernelModules(driver, images, context));
  for (const KernelImage& image : images.images) SETO_TRY(made->load_image(image));
  return std::unique_ptr<const KernelModules>(std::move(made));
}

Status KernelModules::load_image(const KernelImage& image) {
  Module module = nullptr;
  if (const Status loaded = driver_.module_load_data(&module, image.data); !loaded.ok())
    return failure(loaded.code(), "the GPU kernels '%s' (%s) cannot be loaded: %s", image.name, origin_.c_str(),
                   std::string(loaded.text()).c_str());
  modules_.push_back(module);
  return {};
}

Result<LoadedKernel> KernelModules::find(const char* name, int threads) const {
  for (Module module : modules_) {
    Kernel kernel = nullptr;
    const DriverCode code = driver_.module_get_function.code(&kernel, module, name);
    if (code == DriverCode::success) return facts_of(kernel, name, threads);
    if (code != DriverCode::not_found) return driver_.module_get_function.failed(code);
  }
  return failure(Code::internal, "the library has no kernel '%s' (%s): build it anew from unchanged sources", name,
                 origin_.c_str());
}

Result<LoadedKernel> KernelModules::facts_of(Kernel kernel, const char* name, int threads) const {
  LoadedKernel found{.kernel = kernel};
  SETO_TRY(driver_.func_get_attribute(&found.registers, KernelAttribute::registers, kernel));
  SETO_TRY(driver_.func_get_attribute(&found.most_threads, KernelAttribute::max_threads_per_block, kernel));
  if (found.most_threads < threads)
    return failure(
        Code::unavailable,
        "kernel '%s' has %d registers for each thread, so this GPU runs at most %d threads in a block, not %d: use fewer threads",
        name, found.registers, found.most_threads, threads);
  return found;
}

}  // namespace seto::cuda
