#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "src/plan/channel_index.h"
#include "src/plan/verify.h"

// Runs a plan on real elements, in one thread, with one random interleaving at a time. It checks on some interleavings what the
// verifier proves for all. It shares with the verifier only the chunk map and the join of channels.
namespace seto::support {

// Detects wrong sums (`exact`: different contributions and finishes give different values) and wrong roundings (`rounded`).
struct OracleElement {
  std::uint64_t exact = 0;
  float rounded = 0;
  bool has_bytes = false;  // it was rounded by a codec, and its bytes exist

  friend bool operator==(const OracleElement&, const OracleElement&) = default;
};

struct OracleRun {
  const Plan& plan;
  const ChannelIndex& index;
  const VerifyRequest& request;  // uses in_place, order and chains; the capacity only if the order is skewed, else any is tried
  // The outputs of a right plan of this shape, with their roundings. If empty, only ranks are compared with one another.
  const std::vector<std::vector<OracleElement>>* expected = nullptr;  // by logical chunk
};

// Runs one interleaving, chosen by `random`. Returns the error: a wrong or inconsistent output, or the rank that is stuck.
std::optional<std::string> run_once(const OracleRun& run, std::mt19937_64& random);

// The content of each logical chunk after a right run, roundings included. The lengths of chunks do not depend on the
// interleaving.
std::vector<std::vector<OracleElement>> outputs_of(const OracleRun& run, std::mt19937_64& random);

}  // namespace seto::support
