#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "src/plan/channel_index.h"
#include "src/plan/verify.h"

// Runs a plan on real elements, one thread, one random interleaving at a time: what the verifier says of all interleavings is
// here seen or not seen on some. It shares with the verifier only the chunk map and the join of channels.
namespace seto::support {

// Tells wrong sums apart (`exact`: no two contributions and no misplaced finish add up alike) and wrong roundings (`rounded`).
struct OracleElement {
  std::uint64_t exact = 0;
  float rounded = 0;
  bool has_bytes = false;  // what a codec left, with the bytes at hand

  friend bool operator==(const OracleElement&, const OracleElement&) = default;
};

struct OracleRun {
  const Plan& plan;
  const ChannelIndex& index;
  const VerifyRequest& request;  // in_place, order and chains; the capacity too if the order is skewed, else any is tried
  // As a plan of this shape whose outputs are right rounds; empty: only ranks are compared with one another.
  const std::vector<std::vector<OracleElement>>* expected = nullptr;  // by logical chunk
};

// One interleaving, chosen by `random`. The text says what went wrong: a wrong or inconsistent output, or who is stuck.
std::optional<std::string> run_once(const OracleRun& run, std::mt19937_64& random);

// What a right run leaves in each logical chunk, roundings included. Lengths of chunks do not depend on the interleaving.
std::vector<std::vector<OracleElement>> outputs_of(const OracleRun& run, std::mt19937_64& random);

}  // namespace seto::support
