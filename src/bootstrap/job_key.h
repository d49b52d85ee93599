#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/net/secret.h"

namespace seto {

// How the secret that the user gave to the ranks of a job becomes part of the key of a communicator, whatever brought them
// together.

// A rank tells the others this about its secret: equal on ranks that have the same one, empty without a secret, useless for
// another attempt to connect.
[[nodiscard]] std::string secret_check(const std::optional<Secret>& secret, std::uint64_t attempt);
// Fails if the ranks do not all have the same secret, or none, with the same text on every rank. `checks`: by rank.
[[nodiscard]] Status check_same_secret(const std::vector<std::string>& checks);

// Only who has both the key and the secret can derive the result. Without a secret it is the key.
[[nodiscard]] Secret with_user_secret(const Secret& key, const std::optional<Secret>& secret);

}  // namespace seto
