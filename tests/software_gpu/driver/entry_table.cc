#include "tests/software_gpu/driver/entry_table.h"

#include <cstdlib>
#include <string_view>

#include "tests/software_gpu/driver/driver_error.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::ProcAddressResult;

constexpr int kFirstVersion = 2000;

DriverCode get_error_name(DriverCode code, const char** text) {
  *text = error_name(code);
  return *text == nullptr ? DriverCode::invalid_value : DriverCode::success;
}

DriverCode get_error_string(DriverCode code, const char** text) {
  *text = error_text(code);
  return *text == nullptr ? DriverCode::invalid_value : DriverCode::success;
}

const EntryTable& entries() {
  static const EntryTable* const all = [] {
    auto* const table = new EntryTable();
    const cuda::DriverFunctions d;
    add_device_entries(*table, d);
    add_memory_entries(*table, d);
    add_multicast_entries(*table, d);
    add_sharing_entries(*table, d);
    add_pointer_entries(*table, d);
    add_copy_entries(*table, d);
    add_stream_entries(*table, d);
    add_kernel_entries(*table, d);
    add_graph_entries(*table, d);
    table->add_plain("cuGetErrorName", reinterpret_cast<void*>(&get_error_name), 6000);
    table->add_plain("cuGetErrorString", reinterpret_cast<void*>(&get_error_string), 6000);
    table->add_plain("softwareGpuStart", reinterpret_cast<void*>(&start_again), kFirstVersion);
    table->add_plain("softwareGpuStop", reinterpret_cast<void*>(&stop), kFirstVersion);
    table->add_plain("softwareGpuInject", reinterpret_cast<void*>(&inject), kFirstVersion);
    table->add_plain("softwareGpuWritten", reinterpret_cast<void*>(&written), kFirstVersion);
    table->add_plain("softwareGpuLaunched", reinterpret_cast<void*>(&launched), kFirstVersion);
    table->add_plain("softwareGpuCalls", reinterpret_cast<void*>(&calls_of), kFirstVersion);
    table->add_plain("softwareGpuOnFlush", reinterpret_cast<void*>(&set_on_flush), kFirstVersion);
    return table;
  }();
  return *all;
}

// An older driver lacks some functions. The setting is read here, because programs ask before their first call.
bool is_left_out(std::string_view name) {
  const char* const multicast = std::getenv("SOFTWARE_GPU_MULTICAST");
  return multicast != nullptr && std::string_view(multicast) == "absent" && name.starts_with("cuMulticast");
}

}  // namespace
}  // namespace seto::software_gpu::driver

// The only symbol of the library: all other functions are found through it.
extern "C" __attribute__((visibility("default"))) seto::cuda::DriverCode cuGetProcAddress_v2(
    const char* name, void** address, int version, std::uint64_t, seto::cuda::ProcAddressResult* result) {
  using namespace seto::software_gpu::driver;
  const EntryTable::Row* const row = entries().find(name);
  const bool is_there = row != nullptr && version >= row->version && !is_left_out(name);
  *address = is_there ? row->address : nullptr;
  if (result != nullptr)
    *result = is_there         ? ProcAddressResult::success
              : row == nullptr ? ProcAddressResult::symbol_not_found
                               : ProcAddressResult::version_not_sufficient;
  return is_there || result != nullptr ? DriverCode::success : DriverCode::not_found;
}
