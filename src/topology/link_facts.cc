#include "src/topology/link_facts.h"

#include <array>
#include <cstddef>

namespace seto {
namespace {

constexpr std::array<std::string_view, kFactSources> kSourceNames = {"assumed", "file",  "hwloc",    "NVML",
                                                                     "verbs",   "sysfs", "measured", "traffic"};
constexpr std::array<std::string_view, 8> kMediumNames = {"NVLink", "NVSwitch",     "xGMI",   "C2C",
                                                          "PCI",    "interconnect", "fabric", "wide area"};

}  // namespace

std::string_view name_of(FactSource source) { return kSourceNames[static_cast<std::size_t>(source)]; }

std::string_view name_of(LinkMedium medium) { return kMediumNames[static_cast<std::size_t>(medium)]; }

std::optional<FactSource> fact_source_of(std::string_view name) {
  for (std::size_t i = 0; i < kSourceNames.size(); ++i)
    if (kSourceNames[i] == name) return static_cast<FactSource>(i);
  return std::nullopt;
}

}  // namespace seto
