#include "src/topology/discovery/shared_library.h"

#include <dlfcn.h>

namespace seto {

Result<SharedLibrary> SharedLibrary::open(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return failure(Code::unavailable, "cannot open it: %s", why == nullptr ? "no reason" : why);
  }
  return SharedLibrary(file, handle);
}

Status SharedLibrary::address_of(const char* name, void*& address) const {
  address = dlsym(handle_, name);
  if (address == nullptr) return failure(Code::unavailable, "%s has no function %s", file_.c_str(), name);
  return {};
}

}  // namespace seto
