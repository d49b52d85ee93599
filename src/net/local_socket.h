#pragma once

#include <cstdint>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"

namespace seto {

// Unix sockets with abstract names: nothing in the file system, gone with their last holder. Reachable within one network
// namespace only. All descriptors are non-blocking and close-on-exec, and forked children lose them.

enum class SocketKind : std::uint8_t { stream, packets };

// Code::invalid_usage where the name is taken.
[[nodiscard]] Result<PrivateFd> listen_local(const std::string& name, SocketKind kind);

// Waits while the listener's queue is full, until the deadline. Nobody listening is Code::remote_error, at once.
[[nodiscard]] Result<PrivateFd> connect_local(const std::string& name, SocketKind kind, Deadline until);

// Fails unless the process at the other end ran under our user when it connected or listened.
[[nodiscard]] Status check_same_user(int fd);

// Until one of `events` (of poll(2)) or a hang-up is there; Code::timeout at the deadline, with no text worth showing.
[[nodiscard]] Status wait_for(int fd, short events, Deadline until);

// Words errno: running out of descriptors gets the limit and what to do.
[[nodiscard]] Status socket_failure(const char* what);

}  // namespace seto
