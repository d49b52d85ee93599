#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "src/base/clock.h"
#include "src/control/liveness/heartbeats.h"
#include "src/control/local/local_connector.h"
#include "src/control/channel/control_channels.h"
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

class Neighbour;

// A reliable way to another context, shared by all communicators of the two: its memory and its bell, or a link over TCP; and a
// watch on its life. What leads to memory of another process serves all contexts of this one.
class Connection final {
 public:
  struct Own {
    ContextId context = 0;
    const SharedSegment* segment = nullptr;
    tcp::Domain* domain = nullptr;
    FrontDoor* doors = nullptr;
    Wires* wires = nullptr;
  };

  // To a context of this process.
  static Result<std::shared_ptr<Connection>> within(const PeerAddress& peer);
  // To one of another process of this machine, which has been met.
  static std::shared_ptr<Connection> beside(const PeerAddress& peer, std::shared_ptr<Neighbour> neighbour, SharedSegment shared);
  // Over TCP. Blocks until the peer's context does the same, at most until the deadline.
  static Result<std::shared_ptr<Connection>> open(const Own& own, const PeerAddress& peer, const RemoteDoor& door,
                                                  Deadline until);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // With the attempt that opened it.
  [[nodiscard]] const PeerAddress& peer() const { return peer_; }
  // Both contexts are of this process: what is memory there is memory here.
  [[nodiscard]] bool within_process() const { return shared_ != nullptr && neighbour_ == nullptr; }
  // For people: "this process", "shared memory" or "TCP 10.0.0.1 -> 10.0.0.2".
  [[nodiscard]] const std::string& way() const { return way_; }
  // Of a context of this machine.
  [[nodiscard]] std::byte* memory() const { return shared_->segment.data(); }
  [[nodiscard]] std::size_t size() const { return shared_->segment.size(); }
  // The process of a context of this machine; null of this process's.
  [[nodiscard]] const std::shared_ptr<Neighbour>& neighbour() const { return neighbour_; }
  // The link and the wire of a context of another machine; null of this one's.
  [[nodiscard]] const std::shared_ptr<tcp::Link>& link() const { return link_; }
  [[nodiscard]] Wire* wire() const { return wire_.get(); }
  // The peer, or its process, has ended, is frozen, or cannot be reached any more. Never of a context of this process.
  [[nodiscard]] bool dead() const { return ended() || frozen_.load(std::memory_order_acquire); }
  // Nothing of the peer will look at our memory again: a frozen process may, once it goes on.
  [[nodiscard]] bool ended() const { return dead_.load(std::memory_order_acquire) || cut(); }
  // "its process has ended", or what else became of it.
  [[nodiscard]] std::string why_dead() const;
  // That it has ended, for who looks without knowing of connections.
  [[nodiscard]] const std::atomic<bool>& death() const { return dead_; }
  // Wakes the peer's context, which shares memory.
  void ring() const;

  // Of a neighbour's: notices when its process is frozen.
  void watch_beats(Heartbeats& heartbeats);
  // And: it has ended.
  void end() { dead_.store(true, std::memory_order_release); }

 private:
  Connection(PeerAddress peer, std::string way) : peer_(std::move(peer)), way_(std::move(way)) {}

  [[nodiscard]] bool cut() const;

  const PeerAddress peer_;
  std::string way_;
  std::shared_ptr<Neighbour> neighbour_;
  std::shared_ptr<const SharedSegment> shared_;
  std::shared_ptr<tcp::Link> link_;
  std::shared_ptr<Wire> wire_;
  std::atomic<bool> dead_{false};
  std::string silence_;  // fixed once frozen_ is seen
  std::atomic<bool> frozen_{false};
  Heartbeats::Registration beats_watched_;  // last: gone before what the callbacks use
  std::unique_ptr<Wire::OnDeath> on_death_;
};

// First page of every context's segment.
struct SegmentHead {
  std::atomic<std::uint32_t> armed;  // its context sleeps, or is about to
  // Signs of life of its process, on a line that only the control threads touch.
  alignas(64) std::atomic<std::uint64_t> beats;
};

}  // namespace seto
