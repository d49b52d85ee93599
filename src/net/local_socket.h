#pragma once

#include <cstdint>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"

namespace seto {

// Unix sockets with abstract names: they leave nothing in the file system and disappear with their last descriptor. They are
// reachable within one network namespace only. All descriptors are non-blocking and close-on-exec, and forked children lose them.

enum class SocketKind : std::uint8_t { stream, packets };

// Code::invalid_usage: the name is taken.
[[nodiscard]] Result<PrivateFd> listen_local(const std::string& name, SocketKind kind);

// The next caller of a listener. Invalid: there is none, or errno says what failed.
[[nodiscard]] PrivateFd accept_local(const PrivateFd& listener);

// A descriptor without use: its owner closes it to take a caller that would wait for ever where no other descriptor is left.
[[nodiscard]] PrivateFd spare_descriptor();

// Waits while the listener's queue is full, until the deadline. Code::remote_error at once if no socket listens at the name.
[[nodiscard]] Result<PrivateFd> connect_local(const std::string& name, SocketKind kind, Deadline until);

// Fails unless the process at the other end ran under the user of this process when it connected or listened.
[[nodiscard]] Status check_same_user(int fd);

// Waits for one of `events` (of poll(2)) or a hang-up. Code::timeout at the deadline; callers replace its text.
[[nodiscard]] Status wait_for(int fd, short events, Deadline until);

// Turns errno into a failure. Without free descriptors the text states the limit and what to do.
[[nodiscard]] Status socket_failure(const char* what);

}  // namespace seto
