#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "tests/lab/link_model.h"

namespace seto::lab {

// "25m", "1g", "800" bits in a second, powers of 1000.
[[nodiscard]] std::optional<double> parse_rate(std::string_view text);
// "5ms", "200us", "1s", "100ns".
[[nodiscard]] std::optional<Nanoseconds> parse_duration(std::string_view text);
// "0.1%", "0.001", 0 to 1.
[[nodiscard]] std::optional<double> parse_chance(std::string_view text);

// One of rate= delay= jitter= loss= burst-loss=ENTER,LEAVE[,LOSS] queue=BYTES|auto bucket=BYTES overhead=BYTES
// largest=BYTES cut=on|off hole=on|off closed=on|off.
Status set_option(LinkSettings& settings, std::string_view option);
// Options of an uplink or a downlink: rate= queue= bucket= overhead=. Delay, loss and faults belong to pairs.
Status set_access_option(LinkSettings& settings, std::string_view option);

// The ordered pairs that "0>1", "0-1" (both directions) or "*" names among `sites`.
struct SitePair {
  std::size_t from = 0;
  std::size_t to = 0;
};
[[nodiscard]] Result<std::vector<SitePair>> parse_pairs(std::string_view text, std::size_t sites);

// Parses the number of a site below `sites`.
[[nodiscard]] Result<std::size_t> parse_site(std::string_view text, std::size_t sites);
// Parses the number of a site, or "*" for all sites.
[[nodiscard]] Result<std::vector<std::size_t>> parse_sites(std::string_view text, std::size_t sites);

// The text in quotes, for messages.
[[nodiscard]] std::string quoted(std::string_view text);

[[nodiscard]] std::vector<std::string_view> words_of(std::string_view line, char separator);

}  // namespace seto::lab
