#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/core/choice/site_rates.h"

namespace seto {

// The messages in which ranks agree on rates between sites (decision 19).
enum class RateMessageKind : std::uint8_t {
  report = 1,  // to rank 0: the rates that the sender measured
  propose,     // by rank 0: a new version comes
  answer,      // to rank 0: `operation` is the last one of the sender
  commit,      // by rank 0: operations beyond `operation` use the version with these rates
  bounds,      // to rank 0: what the sender carried over links that were not full
};

struct RateMessage {
  RateMessageKind kind = RateMessageKind::report;
  std::uint64_t version = 0;
  std::uint64_t operation = 0;
  SiteLinkRates rates;
};

// A message holds so many rates. If there are more, the lowest ones travel, because choice follows the worst link.
inline constexpr std::size_t kMostRatesOfMessage = 160;

[[nodiscard]] SiteLinkRates lowest_that_fit(SiteLinkRates rates);

[[nodiscard]] std::string encoded(const RateMessage& message);
[[nodiscard]] Result<RateMessage> rate_message_in(std::string_view bytes);

}  // namespace seto
