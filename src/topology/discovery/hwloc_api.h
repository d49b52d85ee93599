#pragma once

#include <memory>
#include <string>

#include "src/base/result.h"

namespace seto {

// hwloc, opened at run time: programs that never ask for a topology do not load it. Tests have a fake, which is a text.
class HwlocApi {
 public:
  virtual ~HwlocApi() = default;
  // Discovers this machine, with PCI devices, and returns it as hwloc's XML. Takes 14 to 44 ms.
  virtual Result<std::string> machine_xml() = 0;
};

std::unique_ptr<HwlocApi> system_hwloc();

}  // namespace seto
