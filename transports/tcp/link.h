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

// Frames of one piece of memory that are not yet in the kernel's hands. Read without the lock: what was counted has been written.
using Unwritten = std::atomic<std::uint32_t>;

// A frame that waits to be written.
struct Outgoing {
  Frame frame;
  const std::byte* payload = nullptr;
  std::shared_ptr<Source> source;
  Unwritten* unwritten = nullptr;  // within the source, or null

  void count() const {
    if (unwritten != nullptr) unwritten->fetch_add(1, std::memory_order_relaxed);
  }
  void done() {
    if (unwritten != nullptr) unwritten->fetch_sub(1, std::memory_order_release);
    unwritten = nullptr;
  }
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

[[nodiscard]] Status connection_failure(int error);

// A reliable way to one context over one or several sockets, shared by all communicators of the two. Sockets take frames from one
// queue when they have room, so that a slow one holds up nothing but what it has taken. All under the lock of its domain, but for
// what is marked.
class Link final {
 public:
  struct Setup {
    std::vector<PrivateFd> sockets;  // connected, non-blocking, proven
    Secret session;                  // of the two contexts, derived from the key of the job
  };
  explicit Link(Setup setup);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  // Frames of that communicator go to the sink from now on; the peer is `member` of it, this end `own`. Queues an opening.
  void enter(std::uint64_t circle, Sink& sink, std::uint32_t member, std::uint32_t own);
  // Nothing of it is heard any more, not even the rest of a frame. What was queued still goes out.
  void leave(std::uint64_t circle);

  // Before flush; a link that is broken takes nothing. Urgent frames, which have no payload, pass those that are not begun.
  void queue(Outgoing outgoing);
  void queue_urgent(const Frame& frame);
  // Of frames of this memory nothing more is read from there: those that are not begun are left out, so their messages are never
  // whole; of those that are, the rest is copied.
  void recall(const Unwritten* unwritten);

  // Nothing is read into that memory any more: the rest of what goes there is dropped.
  void turn_away(const std::byte* memory, std::size_t size);

  // Reads and writes as far as the sockets let it. True: something moved.
  bool receive();
  bool flush();
  [[nodiscard]] bool unsent() const { return !waiting_.empty() || !urgent_.empty() || under_way_ > 0; }
  // The kernel has handed everything to the peer's.
  [[nodiscard]] bool delivered() const;

  // All frames of the peer up to this one have come.
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

  [[nodiscard]] std::size_t sockets() const { return sockets_.size(); }
  [[nodiscard]] int descriptor(std::size_t socket) const;
  [[nodiscard]] bool wants_to_write(std::size_t socket) const;
  // Nothing will be read of that socket any more.
  [[nodiscard]] bool ended(std::size_t socket) const { return broken() || sockets_[socket]->ended; }

  // Any thread: the process at the other end is lost, and who pumps next reads what is still there and breaks the link.
  void give_up() { given_up_.store(true, std::memory_order_release); }
  // Breaks it if it was given up, or if its peer closed a part of it long ago. True: it did.
  bool look_after();
  void break_with(const Status& reason);

  // Any thread: it carries nothing any more, and why.
  [[nodiscard]] bool broken() const { return broken_.load(std::memory_order_acquire); }
  // monotonic_ns of the moment; 0: it is not.
  [[nodiscard]] std::uint64_t broken_since() const { return broken_since_.load(std::memory_order_acquire); }
  [[nodiscard]] Status why() const;

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
    bool ended = false;  // closed by the peer: nothing more to read
    std::array<std::byte, Secret::kSize> opening;
    std::byte* at = nullptr;
    std::uint32_t got = 0;
  };
  struct Circle {
    Sink* sink = nullptr;
    std::uint32_t member = 0;
  };

  // What a socket said when there was nothing more to read or write.
  struct Dry {
    bool moved = false;
    bool ended = false;
    Status failure;
  };
  Dry read(Socket& socket);
  Status take_in(Socket& socket, std::size_t to_message, std::size_t bytes);
  bool receive(Socket& socket);
  // What has come over any socket is read before the link breaks.
  void lose(const Status& reason);

  bool flush(Socket& socket);
  void fill(Socket& socket);
  void wrote(Socket& socket, std::size_t bytes);
  static void take_back(Outgoing& outgoing, bool begun);
  Status digest_staging(Socket& socket);
  Status begin_frame(Socket& socket);
  Status end_frame(Socket& socket);
  Status hear_opening(const Socket& socket);
  Status number(std::uint64_t sequence);
  [[nodiscard]] Secret proof_of(std::uint64_t circle, std::uint32_t member) const;
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
  std::uint64_t partly_ended_since_ = 0;      // monotonic_ns
  std::atomic<bool> given_up_{false};
  std::atomic<bool> broken_{false};
  std::atomic<std::uint64_t> broken_since_{0};
  mutable std::mutex why_mutex_;
  Status why_;
};

}  // namespace seto::tcp
