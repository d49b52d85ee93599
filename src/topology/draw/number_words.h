#pragma once

#include <optional>
#include <string>

#include "src/topology/link_facts.h"

namespace seto {

// 63015384615 -> "63.0 GB/s"; three digits and a unit.
std::string rate_words(double bytes_per_second);
// 0.0603 -> "60.3 ms".
std::string time_words(double seconds);
// "63.0 GB/s, 60.3 ms, loss 0.1 %, 4.2 MB/s a socket (measured, 12 s ago)"; "not known" without a value.
std::string link_words(const LinkFacts& facts);

}  // namespace seto
