#include "src/topology/discovery/nvml_api.h"

#include <array>

#include "src/topology/discovery/shared_library.h"

namespace seto {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS
constexpr int kLinkUp = 1;           // NVML_FEATURE_ENABLED
constexpr int kRemoteGpu = 0;        // NVML_NVLINK_DEVICE_TYPE_GPU
using NvmlDevice = void*;

// The layout of nvmlPciInfo_t since version 3 of the function.
struct NvmlPci {
  char legacy_text[16];
  unsigned domain, bus, device, identity, subsystem;
  char text[32];

  [[nodiscard]] std::optional<PciAddress> address() const {
    if (bus > 0xff || device > 0x1f || (domain == 0 && bus == 0 && device == 0)) return std::nullopt;
    return PciAddress{domain, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(device), 0};
  }
};

struct NvmlFunctions {
  int (*init)();
  int (*shutdown)();
  const char* (*error_text)(int);
  int (*count)(unsigned*);
  int (*device)(unsigned, NvmlDevice*);
  int (*device_at)(const char*, NvmlDevice*);
  int (*pci)(NvmlDevice, NvmlPci*);
  int (*uuid)(NvmlDevice, char*, unsigned);
  int (*name)(NvmlDevice, char*, unsigned);
  int (*capability)(NvmlDevice, int*, int*);
  int (*link_state)(NvmlDevice, unsigned, int*);
  int (*link_remote)(NvmlDevice, unsigned, NvmlPci*);
  int (*link_remote_type)(NvmlDevice, unsigned, int*);  // null in drivers before 460

  static Result<NvmlFunctions> find() {
    SETO_ASSIGN(const SharedLibrary library, SharedLibrary::open(kLibrary));
    NvmlFunctions functions{};
    SETO_TRY(library.find("nvmlInit_v2", functions.init));
    SETO_TRY(library.find("nvmlShutdown", functions.shutdown));
    SETO_TRY(library.find("nvmlErrorString", functions.error_text));
    SETO_TRY(library.find("nvmlDeviceGetCount_v2", functions.count));
    SETO_TRY(library.find("nvmlDeviceGetHandleByIndex_v2", functions.device));
    SETO_TRY(library.find("nvmlDeviceGetHandleByPciBusId_v2", functions.device_at));
    SETO_TRY(library.find("nvmlDeviceGetPciInfo_v3", functions.pci));
    SETO_TRY(library.find("nvmlDeviceGetUUID", functions.uuid));
    SETO_TRY(library.find("nvmlDeviceGetName", functions.name));
    SETO_TRY(library.find("nvmlDeviceGetCudaComputeCapability", functions.capability));
    SETO_TRY(library.find("nvmlDeviceGetNvLinkState", functions.link_state));
    SETO_TRY(library.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", functions.link_remote));
    (void)library.find("nvmlDeviceGetNvLinkRemoteDeviceType", functions.link_remote_type);
    return functions;
  }
};

class SystemNvml final : public NvmlApi {
 public:
  Result<std::vector<Gpu>> gpus() override {
    SETO_ASSIGN(const NvmlFunctions nvml, NvmlFunctions::find());
    if (const int error = nvml.init(); error != 0) return failure(Code::unavailable, "nvmlInit: %s", nvml.error_text(error));
    std::vector<Gpu> found;
    unsigned count = 0;
    (void)nvml.count(&count);
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice device = nullptr;
      NvmlPci pci{};
      if (nvml.device(i, &device) != 0 || nvml.pci(device, &pci) != 0 || !pci.address()) continue;
      found.push_back(described(nvml, device, *pci.address()));
    }
    (void)nvml.shutdown();
    return found;
  }

  Result<Gpu> gpu(const PciAddress& address) override {
    SETO_ASSIGN(const NvmlFunctions nvml, NvmlFunctions::find());
    if (const int error = nvml.init(); error != 0) return failure(Code::unavailable, "nvmlInit: %s", nvml.error_text(error));
    NvmlDevice device = nullptr;
    const std::string place = text_of(address);
    const int error = nvml.device_at(place.c_str(), &device);
    Result<Gpu> found =
        error == 0 ? Result<Gpu>(described(nvml, device, address))
                   : failure(Code::unavailable, "nvmlDeviceGetHandleByPciBusId of %s: %s", place.c_str(), nvml.error_text(error));
    (void)nvml.shutdown();
    return found;
  }

 private:
  static Gpu described(const NvmlFunctions& nvml, NvmlDevice device, const PciAddress& address) {
    Gpu gpu;
    gpu.address = address;
    std::array<char, 96> text{};
    if (nvml.uuid(device, text.data(), text.size()) == 0) gpu.uuid = text.data();
    if (nvml.name(device, text.data(), text.size()) == 0) gpu.product = text.data();
    int major = 0;
    int minor = 0;
    if (nvml.capability(device, &major, &minor) == 0) gpu.compute_capability = 10 * major + minor;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      int state = 0;
      if (nvml.link_state(device, link, &state) != 0 || state != kLinkUp) continue;
      Link& made = gpu.links.emplace_back();
      NvmlPci remote{};
      int type = -1;
      if (nvml.link_remote(device, link, &remote) == 0) made.remote = remote.address();
      if (nvml.link_remote_type != nullptr && nvml.link_remote_type(device, link, &type) == 0)
        made.to_switch = type != kRemoteGpu;
    }
    return gpu;
  }
};

}  // namespace

std::unique_ptr<NvmlApi> system_nvml() { return std::make_unique<SystemNvml>(); }

}  // namespace seto
