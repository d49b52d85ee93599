#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "src/bootstrap/bootstrap.h"

namespace seto {

// Meets ranks of one machine and one user that share nothing but the name of their job. Whoever comes first serves, until its
// process ends, so that nobody waits for a certain rank to listen. The name is public: others are kept out by their user, on both
// sides. Any number of times, numbered as in join_root. Blocks until all `size` ranks have come, or the deadline.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_named(std::string_view job, Rank rank, int size, std::uint64_t number,
                                                            Deadline until);

}  // namespace seto
