#pragma once

#include <cstdint>
#include <string>

#include "src/core/report.h"

// Parts of sentences that verdicts are made of.
namespace seto {

[[nodiscard]] std::string named(Rank rank);
[[nodiscard]] std::string with_number(const ReadCall& call);
// When it last called, or ended a call; 0: it has called nothing that is remembered.
[[nodiscard]] std::uint64_t last_sign_us(const ReadDump& dump);
[[nodiscard]] std::string where_it_is(const ReadDump& dump);
// As others see a rank of which there is no dump.
[[nodiscard]] std::string as_others_see(const Case& one, Rank rank);

}  // namespace seto
