#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "src/bootstrap/bootstrap.h"

namespace seto {

// The name of the local socket at which the ranks of this job join.
[[nodiscard]] std::string local_rendezvous_name(std::string_view job);

// Joins ranks of one machine and one user that share only the name of their job. The first rank to arrive serves until its
// process ends, so no rank waits for a certain rank to listen. The name is public; both sides check the user of the other end. It
// may be called any number of times, numbered as in join_root. Blocks until all `size` ranks have joined, or until the deadline.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_local_rendezvous(std::string_view job, Rank rank, int size,
                                                                       std::uint64_t number, Deadline until);

}  // namespace seto
