#pragma once

#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/bootstrap/unique_id.h"

namespace seto {

// A file in which rank 0 gives its address to the other ranks of one user. It holds a secret, so only its owner may read it.

// Replaces the file atomically.
[[nodiscard]] Status write_root_file(const std::string& path, const UniqueIdBytes& id);
// Removes the file only if it still holds this id.
void remove_root_file(const std::string& path, const UniqueIdBytes& id);

// Fails if the file does not exist (Code::remote_error), or if users other than this one may have read or written it.
[[nodiscard]] Result<UniqueId> read_root_file(const std::string& path);
// Waits until the file exists, then reads it.
[[nodiscard]] Result<UniqueId> wait_for_root_file(const std::string& path, int rank, Deadline until);

// The key that the server of the file proves, independent of the job's name and secret. check_unused asks for it.
[[nodiscard]] Secret presence_key(const UniqueId& id);
// Fails if the server that wrote the file still runs. The file of a job that has ended does not matter, even if another process
// listens at its address now.
[[nodiscard]] Status check_unused(const std::string& path, Deadline until);

}  // namespace seto
