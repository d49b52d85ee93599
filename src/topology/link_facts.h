#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace seto {

// The origin of a fact of the topology. `assumed` marks a guess: a rule or a data sheet gave the value, not this machine.
// `measured`: by a probe or a handshake; `traffic`: from what the job sends anyway.
enum class FactSource : std::uint8_t { assumed, file, hwloc, nvml, verbs, sysfs, measured, traffic };
inline constexpr int kFactSources = 8;
std::string_view name_of(FactSource source);
std::optional<FactSource> fact_source_of(std::string_view name);

// The kind of a link. `interconnect` joins the NUMA nodes of a host, `fabric` the hosts of a site, `wide_area` the sites.
enum class LinkMedium : std::uint8_t { nvlink, nvswitch, xgmi, c2c, pci, interconnect, fabric, wide_area };
std::string_view name_of(LinkMedium medium);

// The facts of one direction of a link. A value that is absent is not known.
struct LinkFacts {
  LinkMedium medium = LinkMedium::fabric;
  std::optional<double> bytes_per_second = std::nullopt;
  std::optional<double> round_trip_s = std::nullopt;
  std::optional<double> loss = std::nullopt;                     // fraction of the packets
  std::optional<double> socket_bytes_per_second = std::nullopt;  // what one socket can carry
  std::optional<double> age_s = std::nullopt;                    // time since the measurement; absent for facts that do not age
  FactSource source = FactSource::assumed;

  // True if there is any value.
  [[nodiscard]] bool known() const { return bytes_per_second || round_trip_s || loss || socket_bytes_per_second; }
  friend bool operator==(const LinkFacts&, const LinkFacts&) = default;
};

}  // namespace seto
