#pragma once

#include <vector>

#include "src/core/connect/rank_announcement.h"
#include "src/core/neighbour.h"

namespace seto {

// Both ends hold a connection that they may use again.
[[nodiscard]] bool acquainted(const Introduction& one, const Introduction& other);

// The meetings that the process of `own` must hold with others of its machine before all its ranks reach all theirs: of the
// contexts of both that lack a connection. From what all ranks said, so that all ranks of two processes see the same meeting. In
// the order of the other process's first rank.
[[nodiscard]] std::vector<Neighbour::Introduced> encounters(const std::vector<Introduction>& all, const Introduction& own,
                                                            AttemptId attempt);

}  // namespace seto
