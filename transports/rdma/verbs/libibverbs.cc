#include "transports/rdma/verbs/libibverbs.h"

#include <dlfcn.h>

#include <cerrno>

#include "src/base/log.h"
#include "transports/rdma/verbs/fork_safety.h"
#include "transports/rdma/verbs/libibverbs_device.h"
#include "transports/rdma/verbs/verbs_advice.h"

namespace seto::rdma {

Result<std::unique_ptr<Verbs>> Libibverbs::open(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return failure(Code::unavailable,
                   "libibverbs cannot be opened (%s): to use RDMA, install rdma-core (Debian: libibverbs1 and ibverbs-providers)",
                   why == nullptr ? file.c_str() : why);
  }
  LibibverbsFunctions functions;
  const char* lacking = nullptr;
#define SETO_FIND(result, name, arguments)                                      \
  functions.name = reinterpret_cast<result(*) arguments>(dlsym(handle, #name)); \
  if (functions.name == nullptr && lacking == nullptr) lacking = #name;
  SETO_LIBIBVERBS_FUNCTIONS(SETO_FIND)
#undef SETO_FIND
#define SETO_FIND(result, name, arguments) functions.name = reinterpret_cast<result(*) arguments>(dlsym(handle, #name));
  SETO_LIBIBVERBS_LATER_FUNCTIONS(SETO_FIND)
#undef SETO_FIND
  if (lacking != nullptr)
    return failure(Code::unavailable, "%s has no function %s: to use RDMA, install rdma-core 31 or later", file.c_str(), lacking);
  if (const Status kept = keep_queues_from_children(functions, kernel_release()); !kept.ok())
    SETO_LOG(warn, "%s", std::string(kept.text()).c_str());
  return std::unique_ptr<Verbs>(std::make_unique<Libibverbs>(functions));
}

Result<std::vector<std::string>> Libibverbs::devices() {
  int count = 0;
  abi::DeviceName** const list = functions_.ibv_get_device_list(&count);
  // A kernel without RDMA has no devices, and is no failure.
  if (list == nullptr) {
    if (errno == ENOSYS) return std::vector<std::string>();
    return verbs_failure(VerbsCall::list_devices, "", errno);
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(functions_.ibv_get_device_name(list[i]));
  functions_.ibv_free_device_list(list);
  return names;
}

Result<std::unique_ptr<VerbsDevice>> Libibverbs::open_device(const std::string& name) {
  int count = 0;
  abi::DeviceName** const list = functions_.ibv_get_device_list(&count);
  if (list == nullptr) return verbs_failure(VerbsCall::list_devices, "", errno);
  abi::Context* context = nullptr;
  int error = ENODEV;
  for (int i = 0; i < count && context == nullptr; ++i) {
    if (name != functions_.ibv_get_device_name(list[i])) continue;
    context = functions_.ibv_open_device(list[i]);
    if (context == nullptr) error = errno;
  }
  functions_.ibv_free_device_list(list);
  if (context == nullptr) return verbs_failure(VerbsCall::open_device, name, error);
  return LibibverbsDevice::create(functions_, context, name);
}

}  // namespace seto::rdma
