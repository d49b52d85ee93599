#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/clock.h"
#include "src/control/meeting_point.h"
#include "src/control/wires.h"
#include "transports/shm/segment.h"
#include "transports/tcp/domain.h"

namespace seto {

// A context's memory and its bell, as other contexts see them. Lives as long as any of them uses it.
struct SharedSegment {
  Segment segment;
  Fd bell;  // eventfd
};

// How another context of this machine is reached.
struct PeerAddress {
  std::string process;  // MeetingPoint::address()
  ContextId context = 0;
  AttemptId attempt = 0;  // of both ends
};

// And one of another machine.
struct RemoteDoor {
  std::string address;  // FrontDoor::address()
  Secret key;           // of the job
  std::uint32_t sockets = 1;
};

// A reliable way to another context, shared by all communicators of the two: its memory and its bell, or a link over TCP; and a
// watch on its life.
class Connection final {
 public:
  struct Own {
    ContextId context = 0;
    const SharedSegment* segment = nullptr;
    // For links:
    tcp::Domain* domain = nullptr;
    FrontDoor* doors = nullptr;
    Wires* wires = nullptr;
  };

  // Blocks until the peer's context does the same, at most until the deadline. A context of this process is reached directly.
  static Result<std::shared_ptr<Connection>> open(const Own& own, const PeerAddress& peer, Deadline until);
  static Result<std::shared_ptr<Connection>> open(const Own& own, const PeerAddress& peer, const RemoteDoor& door,
                                                  Deadline until);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // With the attempt that opened it.
  [[nodiscard]] const PeerAddress& peer() const { return peer_; }
  // Both contexts are of this process: what is memory there is memory here.
  [[nodiscard]] bool within_process() const { return local_ != nullptr; }
  [[nodiscard]] std::byte* memory() const { return local_ != nullptr ? local_->segment.data() : remote_->data(); }
  [[nodiscard]] std::size_t size() const { return local_ != nullptr ? local_->segment.size() : remote_->size(); }
  // The link and the wire of a context of another machine; null of this one's.
  [[nodiscard]] const std::shared_ptr<tcp::Link>& link() const { return link_; }
  [[nodiscard]] Wire* wire() const { return wire_.get(); }
  // The peer's process has ended, or cannot be reached any more. Never of a context of this process.
  [[nodiscard]] bool dead() const { return dead_.load(std::memory_order_acquire) || cut(); }
  // "its process has ended", or what else became of it.
  [[nodiscard]] std::string why_dead() const;
  // The same, for who looks without knowing of connections.
  [[nodiscard]] const std::atomic<bool>& death() const { return dead_; }
  // Bells of the peer arrive here; -1 of this process's, which ring the context's own bell.
  [[nodiscard]] int socket() const { return meeting_ ? meeting_->socket.get() : -1; }
  // Wakes the peer's context.
  void ring() const;

 private:
  explicit Connection(PeerAddress peer) : peer_(std::move(peer)) {}

  const PeerAddress peer_;
  std::shared_ptr<SharedSegment> local_;
  std::optional<Segment> remote_;
  [[nodiscard]] bool cut() const;

  std::optional<Meeting> meeting_;
  std::shared_ptr<tcp::Link> link_;
  std::shared_ptr<Wire> wire_;
  std::atomic<bool> dead_{false};
  Watch watch_;  // last: gone before what its handler uses
  std::unique_ptr<Wire::OnDeath> on_death_;
};

// First page of every context's segment.
struct SegmentHead {
  std::atomic<std::uint32_t> armed;  // its context sleeps, or is about to
};

}  // namespace seto
