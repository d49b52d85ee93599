#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/result.h"
#include "src/net/secret.h"
#include "src/net/tls/secure_stream.h"
#include "transports/resume/payload_retention.h"
#include "transports/tcp/flow/way_choice.h"
#include "transports/tcp/frames/frame.h"

namespace seto::resume {
class CopyMemory;
}

namespace seto::tcp {

class Domain;
class Link;
class ReceiveShare;

// The number of frames of one buffer that wait in a queue, or that the only socket has not completely written to the kernel. A
// link of several sockets keeps a frame as soon as one of them takes it: from then on only the Lender counts it. Read without the
// lock.
using Unwritten = std::atomic<std::uint32_t>;

// A frame in a send queue.
struct Outgoing {
  Frame frame;
  const std::byte* payload = nullptr;
  std::shared_ptr<resume::Lender> lender;  // in the memory's owner; null: the payload outlives the link and never changes
  Unwritten* unwritten = nullptr;          // in the owner, or null

  // Only devices read the payload (resume::Lender). Only for a link that continues.
  [[nodiscard]] bool is_of_gpu() const { return lender != nullptr && lender->host_copy() != nullptr; }
  void count() const {
    if (unwritten != nullptr) unwritten->fetch_add(1, std::memory_order_relaxed);
  }
  void done() {
    if (unwritten != nullptr) unwritten->fetch_sub(1, std::memory_order_release);
    unwritten = nullptr;
  }
};

// Receives the frames of one communicator. Called with the domain's lock held.
class Sink {
 public:
  virtual ~Sink() = default;
  // The destination of the payload, with room for frame.length bytes. Null: the payload is read and dropped. A failure means
  // malformed input and breaks the connection.
  virtual Result<std::byte*> place(std::uint32_t member, const Frame& frame) = 0;
  // The payload is complete. Null: it was dropped.
  virtual Status arrived(std::uint32_t member, const Frame& frame, std::byte* at) = 0;
  // The path broke before the payload was complete: as if the header had never come. The frame comes again, over another path.
  // Only for a destination that place() has chosen.
  virtual void unplace(std::uint32_t member, const Frame& frame, std::byte* at) { (void)member, (void)frame, (void)at; }
  // The window of the link to that member has grown (Link::pipe).
  virtual void pipe_grew(std::uint32_t member) { (void)member; }
};

// A communicator as its link knows it, by number.
struct EnteredGroup {
  Sink* sink = nullptr;
  std::uint32_t member = 0;
};
// One that entered before the sockets were open, or whose frames may go over a path that is opened later.
struct Entered {
  std::uint64_t peer_group = 0;
  std::uint32_t own = 0;
  bool left = false;
};

// Opens the sockets of a link when they are needed. Called with the domain's lock held; neither blocks nor calls the link back.
class LinkOpener {
 public:
  virtual ~LinkOpener() = default;
  // This end has queued its first data. Called once, also if the peer has had the sockets opened already.
  [[nodiscard]] virtual Status need() = 0;
  // The link is broken and takes no sockets any more.
  virtual void give_up() = 0;
};

// Opens paths of a link again. Called with the domain's lock held; neither blocks nor calls the link back.
class PathDialer {
 public:
  virtual ~PathDialer() = default;
  // Some paths are broken. If this end dials, it comes back with Domain::take_path; else the peer does.
  virtual void paths_broke() = 0;
  // The link is broken and takes no paths any more.
  virtual void give_up() = 0;
};

// In place of the number of an attempt, which counts from 1: it is not known which rail the peer has lost, and the own one ends.
inline constexpr std::uint32_t kAnyAttempt = 0;

// Sets up rails of a link. Called with the domain's lock held; neither blocks nor calls the link back, except in advance().
class RailOpener {
 public:
  virtual ~RailOpener() = default;
  // By the holder of the token, in each pump of an open link: begins what is missing, and comes back with Domain::take_path.
  virtual void advance(Domain& domain, Link& link) = 0;
  // A rail is being set up: a thread has to pump.
  [[nodiscard]] virtual bool busy() const = 0;
  // The rail of that attempt does not work at this end any more: the peer must be told (Link::peer_lost_rail), for its device may
  // never find out.
  virtual void broke(std::size_t rail, std::uint32_t attempt) = 0;
  // The link takes no rails any more: what was begun ends now.
  virtual void give_up() = 0;
};

// The parts and properties of a new link.
struct LinkSetup {
  std::vector<SecureStream> sockets;  // connected, non-blocking, authenticated
  Secret session;                     // shared by the two contexts, derived from the key of the job
  std::uint32_t round_trip_us = 0;    // about the same at both ends
  // How long a far link survives an outage of its sockets (0: as the kernel decides), and one with a dialer being without any.
  std::uint64_t patience_ms = 0;
  ReceiveShare* share = nullptr;       // of the domain that it is added to
  std::shared_ptr<LinkOpener> opener;  // where there are no sockets yet
  bool continues = false;              // the peer's end does, too
  std::size_t routes = 1;              // on which its sockets are (routes.h)
  bool together = false;               // frames go over all routes that work, not only over the best
  bool adapts = false;                 // the number of its sockets follows what they carry (socket_count.h)
  // Null: a path that broke stays so, and the last one breaks the link.
  std::shared_ptr<PathDialer> dialer;
  std::shared_ptr<resume::CopyMemory> copies{};  // of the domain that it is added to; null: its own
  // Places for rails; only of a link that continues and has one route of sockets. Equally many at both ends.
  std::size_t rails = 0;
  std::shared_ptr<RailOpener> rail_opener{};
  std::unique_ptr<WayChoice> choice{};  // null: everything goes over rails while one works
};

}  // namespace seto::tcp
