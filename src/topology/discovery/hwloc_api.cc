#include "src/topology/discovery/hwloc_api.h"

#include <mutex>

#include "src/topology/discovery/shared_library.h"

namespace seto {
namespace {

// The functions of hwloc 2 that are used. The topology is opaque here, so hwloc's header is not needed to build.
using HwlocTopology = void*;
constexpr const char* kLibrary = "libhwloc.so.15";  // the ABI of all releases 2.x
constexpr int kKeepImportant = 3;                   // HWLOC_TYPE_FILTER_KEEP_IMPORTANT
constexpr unsigned long kBlacklist = 1;             // HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST

// Plugins that initialise drivers of GPUs or ask a display server. NVML is asked by us, and PCI needs none of them.
constexpr const char* kUnwanted[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"};

struct HwlocFunctions {
  int (*init)(HwlocTopology*);
  int (*set_components)(HwlocTopology, unsigned long, const char*);
  int (*set_io_filter)(HwlocTopology, int);
  int (*load)(HwlocTopology);
  int (*is_this_system)(HwlocTopology);
  int (*export_xml)(HwlocTopology, char**, int*, unsigned long);
  void (*free_xml)(HwlocTopology, char*);
  void (*destroy)(HwlocTopology);

  static Result<HwlocFunctions> find() {
    Result<SharedLibrary> opened = SharedLibrary::open(kLibrary);
    if (!opened.ok())
      return failure(Code::unavailable, "%s; install libhwloc15, else NUMA nodes and PCI switches stay unknown",
                     std::string(opened.status().text()).c_str());
    const SharedLibrary& library = opened.value();
    HwlocFunctions functions{};
    SETO_TRY(library.find("hwloc_topology_init", functions.init));
    SETO_TRY(library.find("hwloc_topology_set_components", functions.set_components));
    SETO_TRY(library.find("hwloc_topology_set_io_types_filter", functions.set_io_filter));
    SETO_TRY(library.find("hwloc_topology_load", functions.load));
    SETO_TRY(library.find("hwloc_topology_is_thissystem", functions.is_this_system));
    SETO_TRY(library.find("hwloc_topology_export_xmlbuffer", functions.export_xml));
    SETO_TRY(library.find("hwloc_free_xmlbuffer", functions.free_xml));
    SETO_TRY(library.find("hwloc_topology_destroy", functions.destroy));
    return functions;
  }
};

class SystemHwloc final : public HwlocApi {
 public:
  Result<std::string> machine_xml() override {
    // hwloc asks libudev for names of devices, and libudev chooses the seed of its hash tables at its first call, without
    // a lock. Ranks that are threads of one process ask at the same time.
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    SETO_ASSIGN(const HwlocFunctions hwloc, HwlocFunctions::find());
    HwlocTopology topology = nullptr;
    if (hwloc.init(&topology) != 0) return failure(Code::unavailable, "hwloc_topology_init failed");
    const Result<std::string> text = loaded_xml(hwloc, topology);
    hwloc.destroy(topology);
    return text;
  }

 private:
  static Result<std::string> loaded_xml(const HwlocFunctions& hwloc, HwlocTopology topology) {
    for (const char* const name : kUnwanted) (void)hwloc.set_components(topology, kBlacklist, name);
    if (hwloc.set_io_filter(topology, kKeepImportant) != 0) return failure(Code::unavailable, "hwloc refuses PCI devices");
    if (hwloc.load(topology) != 0) return system_failure(Code::unavailable, "hwloc cannot discover this machine");
    if (hwloc.is_this_system(topology) == 0)
      return failure(Code::unavailable, "hwloc describes another machine, because HWLOC_XMLFILE or HWLOC_SYNTHETIC is set");
    char* buffer = nullptr;
    int size = 0;
    if (hwloc.export_xml(topology, &buffer, &size, 0) != 0) return failure(Code::unavailable, "hwloc cannot write XML");
    std::string text(buffer, size > 0 ? static_cast<std::size_t>(size) - 1 : 0);  // the size includes the final zero
    hwloc.free_xml(topology, buffer);
    return text;
  }
};

}  // namespace

std::unique_ptr<HwlocApi> system_hwloc() { return std::make_unique<SystemHwloc>(); }

}  // namespace seto
