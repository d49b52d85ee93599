#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fd.h"
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

inline constexpr std::size_t kDescriptorsAtOnce = 128;

// Sends a packet with at most kDescriptorsAtOnce descriptors, as sendmsg() that neither blocks nor raises a signal.
ssize_t send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors);

struct ReceivedPacket {
  ssize_t size = -1;               // as of recvmsg() that does not block: 0 at the end, -1 with errno
  std::vector<Fd> descriptors;     // all that came, expected or not, so that none leaks
  bool is_cut = false;             // the packet is longer than `bytes`
  bool lacks_descriptors = false;  // this process had no room for some
};
[[nodiscard]] ReceivedPacket receive_packet(int socket, std::span<std::byte> bytes);

// Fails unless the process at the other end ran under the user of this process when it connected or listened.
[[nodiscard]] Status check_same_user(int fd);

// Waits for one of `events` (of poll(2)) or a hang-up. Code::timeout at the deadline; callers replace its text.
[[nodiscard]] Status wait_for(int fd, short events, Deadline until);

// Turns errno into a failure. Without free descriptors the text states the limit and what to do.
[[nodiscard]] Status socket_failure(const char* what);

}  // namespace seto
