#pragma once

#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/bootstrap/unique_id.h"

namespace seto {

// A file by which rank 0 tells the others of one user how to reach it. It holds a secret: only its owner may read it.

// Appears whole or not at all, in place of what was there.
[[nodiscard]] Status write_root_file(const std::string& path, const UniqueIdBytes& id);
// Leaves a file that holds anything else.
void remove_root_file(const std::string& path, const UniqueIdBytes& id);

// Fails for a file that is not there (Code::remote_error), or that others than this user may have written or read.
[[nodiscard]] Result<UniqueId> read_root_file(const std::string& path);
// Reads it as soon as it is there.
[[nodiscard]] Result<UniqueId> wait_for_root_file(const std::string& path, int rank, Deadline until);

// What whoever serves by the file proves to have, whatever its job is called and whether it has a secret.
[[nodiscard]] Secret presence_key(const UniqueId& id);
// Fails if the file leads to whoever wrote it. One of a job that has ended is no obstacle, whoever listens now where it leads.
[[nodiscard]] Status check_unused(const std::string& path, Deadline until);

}  // namespace seto
