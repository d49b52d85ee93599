#pragma once

#include "src/base/clock.h"
#include "src/base/types.h"
#include "src/bootstrap/rendezvous_address.h"
#include "src/net/secret.h"

namespace seto {

// Ranks with a secret and ranks without one wait for each other at different addresses. So a rank also says hello where the
// others would wait: the server there mentions it at its own deadline, and the result tells this rank.
struct SecretProbe {
  RendezvousAddress where;
  Secret key;
  Rank rank = 0;
};

// True: a server of this library answers there, and it does not know the key. That proves nothing, so it is good for a text only.
[[nodiscard]] bool finds_another_secret(const SecretProbe& probe);

}  // namespace seto
