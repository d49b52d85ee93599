#include "src/device/cuda/driver.h"

#include <dlfcn.h>

#include "src/device/cuda/driver_list.h"

namespace seto::cuda {
namespace {

// The function that finds all others.
struct Finder {
  DriverCode (*find)(const char*, void**, int, std::uint64_t, ProcAddressResult*) = nullptr;
};

// cuGetProcAddress with the arguments of CUDA 12.0. Older drivers lack it, and are too old anyway.
constexpr const char* kGetProcAddress = "cuGetProcAddress_v2";
constexpr int kMessagesVersion = 6000;

// The advice for a driver that cannot run the library's kernels.
constexpr const char* kUpdate =
    "update the NVIDIA driver to release 580 or later, or install the package cuda-compat of this release";

Result<Finder> open_library(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return failure(Code::unavailable,
                   "the CUDA driver cannot be opened (%s): to use GPUs, install the NVIDIA driver, and start a container with "
                   "--gpus all",
                   why == nullptr ? file.c_str() : why);
  }
  const Finder finder{reinterpret_cast<decltype(Finder::find)>(dlsym(handle, kGetProcAddress))};
  if (finder.find != nullptr) return finder;
  return failure(Code::unavailable, "%s has no %s, so it is older than CUDA 12.0, and %s is needed: %s", file.c_str(),
                 kGetProcAddress, version_text(kOldestDriver).c_str(), kUpdate);
}

// Fails only where the driver lacks the function.
Result<void*> find_function(const Finder& finder, const char* name, int version) {
  void* address = nullptr;
  ProcAddressResult result = ProcAddressResult::success;
  const DriverCode code = finder.find(name, &address, version, kProcAddressLegacyStream, &result);
  if (code == DriverCode::success && result == ProcAddressResult::success && address != nullptr) return address;
  return failure(Code::unavailable, "the CUDA driver has no %s of CUDA %s: %s", name, version_text(version).c_str(), kUpdate);
}

Status find_message(const Finder& finder, const char* name, DriverCode (*&function)(DriverCode, const char**)) {
  SETO_ASSIGN(void* const address, find_function(finder, name, kMessagesVersion));
  function = reinterpret_cast<DriverCode (*)(DriverCode, const char**)>(address);
  return {};
}

}  // namespace

Result<std::unique_ptr<const Driver>> Driver::open(const std::string& file) {
  SETO_ASSIGN(const Finder finder, open_library(file));
  std::unique_ptr<Driver> driver(new Driver());
  SETO_TRY(find_message(finder, "cuGetErrorName", driver->messages_.name));
  SETO_TRY(find_message(finder, "cuGetErrorString", driver->messages_.text));

  // The version comes first: of an old driver its age is the news, not the first function that it lacks.
  auto& get_version = driver->driver_get_version;
  SETO_ASSIGN(void* const address, find_function(finder, get_version.name(), get_version.version()));
  get_version.set(address, &driver->messages_);
  SETO_TRY(get_version(&driver->version_));
  if (driver->version_ < kOldestDriver)
    return failure(Code::unavailable, "the CUDA driver is of CUDA %s, but the kernels of this library need CUDA %s: %s",
                   version_text(driver->version_).c_str(), version_text(kOldestDriver).c_str(), kUpdate);

  Status lacking;
  for_each_call(*driver, [&](auto& call) {
    const Result<void*> found = find_function(finder, call.name(), call.version());
    if (found.ok())
      call.set(found.value(), &driver->messages_);
    else if (lacking.ok())
      lacking = found.status();
  });
  SETO_TRY(lacking);
  for_each_optional_call(*driver, [&](auto& call) {
    const Result<void*> found = find_function(finder, call.name(), call.version());
    if (found.ok()) call.set(found.value(), &driver->messages_);
  });
  return std::unique_ptr<const Driver>(std::move(driver));
}

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

}  // namespace seto::cuda
