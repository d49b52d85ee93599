#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/topology/graph/pci_address.h"

namespace seto {

// NVML, opened at run time. GPUs are told apart by PCI address and UUID; NVML's own numbering is not that of CUDA and does not
// leave this interface. Tests have a fake.
class NvmlApi {
 public:
  struct Link {
    std::optional<PciAddress> remote;  // absent: a virtual machine hides it
    bool to_switch = true;
  };
  struct Gpu {
    PciAddress address;
    std::string uuid;
    std::string product;
    int compute_capability = -1;  // times ten: 90 is H100
    std::vector<Link> links;      // those that are up, one for each link
  };

  virtual ~NvmlApi() = default;
  virtual Result<std::vector<Gpu>> gpus() = 0;
  // The GPU at this address alone. NVML prepares no other one for that.
  virtual Result<Gpu> gpu(const PciAddress& address) = 0;
};

std::unique_ptr<NvmlApi> system_nvml();

}  // namespace seto
