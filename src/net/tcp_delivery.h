#pragma once

#include <cstdint>
#include <optional>

namespace seto {

// The view of the kernel of one connected TCP socket. (Its own figure of a rate stays as it is while a socket has less to send,
// so that the sum over several sockets is of different times: the segments are counted instead.)
struct TcpDelivery {
  std::uint32_t segments = 0;       // that the peer has received, since the beginning, modulo 2^32
  std::uint32_t segment_bytes = 0;  // of a full segment
  bool app_limited = true;          // the socket had nothing more to send when the latest of them was sent
  std::uint32_t round_trip_us = 0;  // the shortest; 0: unknown
  std::uint32_t now_us = 0;         // the round trip by now, smoothed, with what waits on the way; 0: unknown
  std::uint64_t beyond_loss = 0;    // bytes that the peer has received after one that it still misses, about
  std::uint64_t bytes_sent = 0;     // since the beginning, with those that were sent again; 0: an old kernel does not tell
  std::uint64_t bytes_resent = 0;   // those that were sent again
  std::uint32_t silent_ms = 0;      // since bytes arrived last
  std::uint32_t unheard_ms = 0;     // since the peer's kernel acknowledged anything, while bytes wait for it; 0: none wait
};

// Absent if the kernel does not measure it.
std::optional<TcpDelivery> tcp_delivery(int fd);

// How far the kernel of the peer has acknowledged what was sent.
struct TcpAcknowledged {
  std::uint64_t bytes = 0;    // since the beginning
  bool waits = false;         // bytes wait for it, or for a way out of this host
  bool in_flight = false;     // bytes were sent and wait for it
  bool sent_in_vain = false;  // bytes were sent again after a timeout, and nothing has been acknowledged since
};
// Absent if the kernel does not tell.
std::optional<TcpAcknowledged> tcp_acknowledged(int fd);

// Bytes may wait so long for an acknowledgement before the connection counts as broken. They are sent again at least once a
// second, so that a connection goes on soon after a long outage, where the kernel can be told so (Linux 6.15); else after up to
// the length of the outage again.
void outlast_outages(int fd, std::uint64_t patience_ms);

}  // namespace seto
