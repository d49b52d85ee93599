#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/secret.h"
#include "transports/tcp/fifo.h"
#include "transports/tcp/frame.h"

namespace seto::tcp {

// Memory from which frames are sent: it lives until the last of them is in the kernel's hands, whoever else lets go of it.
class Source {
 public:
  virtual ~Source() = default;
};

// A frame that waits to be written. `unwritten` counts those of one piece of memory.
struct Outgoing {
  Frame frame;
  const std::byte* payload = nullptr;
  std::shared_ptr<Source> source;
  std::uint32_t* unwritten = nullptr;  // within the source, or null
};

// Who hears the frames of one communicator. Called with the domain's lock held.
class Sink {
 public:
  virtual ~Sink() = default;
  // Where the payload goes: room for frame.length bytes. Null: it is read and dropped. A failure breaks the link: it is garbage.
  virtual Result<std::byte*> place(std::uint32_t member, const Frame& frame) = 0;
  // The payload is there: at null it was dropped.
  virtual Status arrived(std::uint32_t member, const Frame& frame, std::byte* at) = 0;
};

// A reliable way to one context over one or several sockets, shared by all communicators of the two. Sockets take frames from one
// queue when they have room, so that a slow one holds up nothing but what it has taken. All under the lock of its domain, but for
// what is marked.
class Link final {
 public:
  struct Setup {
    std::vector<PrivateFd> sockets;  // connected, non-blocking, proven
    Secret session;                  // of the handshake: known to these two alone
  };
  explicit Link(Setup setup);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  // Frames of that communicator go to the sink from now on; the peer is `member` of it, this end `own`.
  void enter(std::uint64_t circle, Sink& sink, std::uint32_t member, std::uint32_t own);
  // Nothing of it is heard any more, not even the rest of a frame. What was queued still goes out.
  void leave(std::uint64_t circle);

  // Before flush. Urgent frames, which have no payload, pass those that are not begun.
  void queue(Outgoing outgoing) { waiting_.push(std::move(outgoing)); }
  void queue_urgent(const Frame& frame) { urgent_.push({frame, nullptr, nullptr, nullptr}); }
  // Frames of this memory that are not begun are dropped; one that is under way goes on with zeros.
  void recall(const std::uint32_t* unwritten);

  // Reads and writes as far as the sockets let it. True: something moved.
  bool receive();
  bool flush();
  [[nodiscard]] bool unsent() const { return !waiting_.empty() || !urgent_.empty() || under_way_ > 0; }
  // The kernel has handed everything to the peer's.
  [[nodiscard]] bool delivered() const;

  [[nodiscard]] std::size_t sockets() const { return sockets_.size(); }
  [[nodiscard]] int descriptor(std::size_t socket) const;
  [[nodiscard]] bool wants_to_write(std::size_t socket) const;

  // Any thread: it carries nothing any more, and why.
  [[nodiscard]] bool broken() const { return broken_.load(std::memory_order_acquire); }
  // monotonic_ns of the moment; 0: it is not.
  [[nodiscard]] std::uint64_t broken_since() const { return broken_since_.load(std::memory_order_acquire); }
  [[nodiscard]] Status why() const;
  void break_with(const Status& reason);

 private:
  static constexpr std::size_t kBatch = 8;
  static constexpr std::size_t kStaging = 16 << 10;

  struct Socket {
    PrivateFd fd;
    // Out: frames that this socket has taken, and how much of the first is written.
    std::array<Outgoing, kBatch> batch;
    std::size_t taken = 0;
    std::size_t written = 0;
    bool full = false;
    // In: bytes not yet looked at, and the frame whose payload is being read.
    std::array<std::byte, kStaging> staging;
    std::size_t begin = 0, end = 0;
    Frame frame;
    bool in_payload = false;
    bool late = false;  // it has come before, over another socket
    std::array<std::byte, Secret::kSize> opening;
    std::byte* at = nullptr;
    std::uint32_t got = 0;
  };
  struct Circle {
    Sink* sink = nullptr;
    std::uint32_t member = 0;
  };

  bool flush(Socket& socket);
  void fill(Socket& socket);
  void wrote(Socket& socket, std::size_t bytes);
  bool receive(Socket& socket);
  Status digest_staging(Socket& socket);
  Status begin_frame(Socket& socket);
  Status end_frame(Socket& socket);
  Status hear_opening(const Socket& socket);
  [[nodiscard]] bool seen(std::uint64_t sequence);
  [[nodiscard]] Circle* circle_of(std::uint64_t key);

  std::vector<std::unique_ptr<Socket>> sockets_;
  Secret session_;
  Fifo<Outgoing> waiting_;
  Fifo<Outgoing> urgent_;
  std::size_t under_way_ = 0;  // taken by sockets
  std::uint64_t sent_ = 0;     // sequence numbers given
  std::uint64_t heard_ = 0;    // all up to this one have come
  std::set<std::uint64_t> beyond_;
  std::unordered_map<std::uint64_t, Circle> circles_;
  std::unordered_set<std::uint64_t> opened_;  // by the peer, with proof
  std::atomic<bool> broken_{false};
  std::atomic<std::uint64_t> broken_since_{0};
  mutable std::mutex why_mutex_;
  Status why_;
};

}  // namespace seto::tcp
