#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/status.h"
#include "transports/resume/heard.h"
#include "transports/resume/path_movement.h"
#include "transports/resume/pinned_frames.h"
#include "transports/tcp/frames/frame.h"
#include "transports/tcp/link/fifo.h"
#include "transports/tcp/link/link_users.h"
#include "transports/tcp/link/path_pipe.h"

namespace seto::tcp {

// One socket of a link, or a rail in its place: what it writes, and what it reads.
struct LinkSocket {
  static constexpr std::size_t kBatch = 8;
  static constexpr std::size_t kStaging = 16 << 10;

  // The result of reading a socket until it is empty.
  struct Dry {
    std::size_t bytes = 0;
    bool ended = false;
    int error = 0;   // of the socket
    Status failure;  // malformed input
  };

  PathPipe pipe;
  std::uint32_t index = 0;
  std::size_t route = 0;
  bool broken = false;          // nothing is read or written until take_path()
  bool left = false;            // this end has reset it: it lies on another route than its own, or stood still for long
  std::uint64_t opened_ns = 0;  // when it was opened again; 0: never
  // It stood still for long, or broke soon after it was opened again: perhaps its path does not pass long packets.
  bool short_segments = false;
  std::uint32_t attempt = 0;     // that opened it, or what is offered
  std::uint32_t of_attempt = 0;  // which opened `pipe`, if it is a rail
  PathPipe offered;
  bool stalled = false;          // takes no frames until the peer's kernel has what it took
  std::uint64_t stalled_ns = 0;  // since when, or since something of it was acknowledged
  bool route_stalled = false;    // or what the other sockets of its route took, for it had taken nothing
  resume::PathMovement movement;
  // Output: frames that no other socket may take, frames that this socket has taken, and how many bytes of the first are
  // written.
  Fifo<Outgoing> own;
  std::array<Outgoing, kBatch> batch;
  std::size_t taken = 0;
  std::size_t written = 0;
  resume::PinnedFrames pinned;  // only of a rail
  bool full = false;
  std::size_t unsent = 0;     // bytes that the kernel has not sent yet, as far as flush() knows
  std::size_t in_flight = 0;  // bytes that the peer has not acknowledged, the unsent ones included; only with a limit
  // Input: bytes not yet parsed, and the frame whose payload is being read.
  std::array<std::byte, kStaging> staging;
  std::size_t begin = 0, end = 0;
  Frame frame;
  bool in_payload = false;
  bool ended = false;            // closed by the peer
  bool confirmed = true;         // false: the peer has not yet shown that it took the path, too
  resume::HeardBytes own_words;  // the payload of a frame for the connection itself
  std::byte* at = nullptr;
  std::uint32_t got = 0;

  [[nodiscard]] bool live() const { return !ended && !broken; }
  // It takes a frame now, and has taken none.
  [[nodiscard]] bool idle() const { return live() && !full && !stalled && taken == 0; }
};

// The places of a link for sockets, and how many of them are used. In order: sockets that it began with come first.
struct SocketPlaces {
  std::size_t first = 0;                // sockets that it began with
  std::size_t peer_wants = 0;           // to be open
  std::uint64_t peer_wanted_at = 0;     // the number of the frame that said so
  std::size_t limit = kMostSockets;     // below it sockets may be opened
  std::size_t carriers = kMostSockets;  // below it they take frames from the queue
};

}  // namespace seto::tcp
