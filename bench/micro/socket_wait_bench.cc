// Compares ways to wait for a TCP socket and to send on it, on this machine. The tcp transport was designed by these figures.
//
//   socket_wait_bench [SECONDS of each measurement, 1]
//
// Two processes over loopback: a ping-pong of 72 bytes, and 64 KiB frames in both directions at once, one thread each. Waiting:
// `spin` on recv; `epoll 0`, a poll before each recv; `epoll`, sleeping; `uring spin` and `uring`, one receive and one send in
// flight, polled or slept for. Sending: plain, MSG_ZEROCOPY. Acknowledging: TCP_QUICKACK after each receive. It links nothing of
// Seto.
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/limit/processes.h"

namespace {

using seto::limit::Clock;
using seto::limit::seconds_since;
using Bytes = std::span<char>;

enum class Wait { spin, epoll_look, epoll_sleep, ring_spin, ring_sleep };

struct Way {
  const char* name;
  Wait wait;
  bool zero_copy;
  bool quick_ack;
};

constexpr int kQuickAckPerReceive = 1;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "socket_wait_bench: %s: %s\n", what, std::strerror(errno));
  _exit(1);
}

void switch_on(int fd, int level, int option) {
  const int on = 1;
  if (setsockopt(fd, level, option, &on, sizeof on) != 0) fail("setsockopt");
}

// One end of the connection: receives what is available now and sends what fits now. 0 means that nothing was transferred yet,
// and the caller passes the same bytes again.
class Port {
 public:
  virtual ~Port() = default;
  virtual std::size_t receive(Bytes bytes) = 0;
  virtual std::size_t send(Bytes bytes) = 0;
  virtual void wait(bool wants_room) = 0;
};

class SocketPort final : public Port {
 public:
  SocketPort(int fd, const Way& way) : fd_(fd), way_(way), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event) != 0) fail("epoll_ctl");
    if (way.zero_copy) switch_on(fd, SOL_SOCKET, SO_ZEROCOPY);
  }
  ~SocketPort() override { close(epoll_); }

  std::size_t receive(Bytes bytes) override {
    if (way_.wait == Wait::epoll_look) {
      epoll_event event;
      if (epoll_wait(epoll_, &event, 1, 0) == 0) return 0;
    }
    const ssize_t size = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN)) fail("recv");
    if (size > 0 && way_.quick_ack) setsockopt(fd_, IPPROTO_TCP, TCP_QUICKACK, &kQuickAckPerReceive, sizeof(int));
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }

  std::size_t send(Bytes bytes) override {
    if (way_.zero_copy && ++sends_ % kSendsPerReap == 0) reap();
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (way_.zero_copy ? MSG_ZEROCOPY : 0);
    const ssize_t size = ::send(fd_, bytes.data(), bytes.size(), flags);
    if (size < 0 && errno == ENOBUFS) reap();
    if (size < 0 && errno != EAGAIN && errno != ENOBUFS) fail("send");
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }

  void wait(bool wants_room) override {
    if (way_.wait != Wait::epoll_sleep) return;
    if (wants_room != watches_room_) {
      watches_room_ = wants_room;
      epoll_event event{.events = EPOLLIN | (wants_room ? static_cast<unsigned>(EPOLLOUT) : 0U), .data = {}};
      if (epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_, &event) != 0) fail("epoll_ctl");
    }
    epoll_event event;
    epoll_wait(epoll_, &event, 1, 1000);
  }

 private:
  static constexpr unsigned kSendsPerReap = 16;

  // Collects the notifications that buffers are free again. The benchmark sends the same bytes for ever, so it only needs their
  // room in the kernel.
  void reap() {
    std::array<char, 256> control{};
    msghdr message{};
    do {
      message = {};
      message.msg_control = control.data();
      message.msg_controllen = control.size();
    } while (recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
  }

  int fd_;
  Way way_;
  int epoll_;
  unsigned sends_ = 0;
  bool watches_room_ = false;
};

// The rings of io_uring, by its raw system calls.
class Ring final {
 public:
  static constexpr unsigned kEntries = 8;

  Ring() {
    io_uring_params parameters{};
    fd_ = static_cast<int>(syscall(SYS_io_uring_setup, kEntries, &parameters));
    if (fd_ < 0) return;
    const std::size_t size = std::max<std::size_t>(parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned),
                                                   parameters.cq_off.cqes + parameters.cq_entries * sizeof(io_uring_cqe));
    char* rings = map(size, IORING_OFF_SQ_RING);
    entries_ = reinterpret_cast<io_uring_sqe*>(map(parameters.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
    submit_tail_ = reinterpret_cast<unsigned*>(rings + parameters.sq_off.tail);
    submit_mask_ = *reinterpret_cast<unsigned*>(rings + parameters.sq_off.ring_mask);
    order_ = reinterpret_cast<unsigned*>(rings + parameters.sq_off.array);
    done_head_ = reinterpret_cast<unsigned*>(rings + parameters.cq_off.head);
    done_tail_ = reinterpret_cast<unsigned*>(rings + parameters.cq_off.tail);
    done_mask_ = *reinterpret_cast<unsigned*>(rings + parameters.cq_off.ring_mask);
    done_ = reinterpret_cast<io_uring_cqe*>(rings + parameters.cq_off.cqes);
  }
  ~Ring() {
    if (fd_ >= 0) close(fd_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] bool usable() const { return fd_ >= 0; }

  void submit(std::uint8_t operation, int fd, Bytes bytes) {
    const unsigned tail = *submit_tail_;
    io_uring_sqe& entry = entries_[tail & submit_mask_];
    entry = {};
    entry.opcode = operation;
    entry.fd = fd;
    entry.addr = reinterpret_cast<std::uint64_t>(bytes.data());
    entry.len = static_cast<unsigned>(bytes.size());
    entry.msg_flags = operation == IORING_OP_SEND ? static_cast<unsigned>(MSG_NOSIGNAL) : 0U;
    entry.user_data = operation;
    order_[tail & submit_mask_] = tail & submit_mask_;
    std::atomic_ref(*submit_tail_).store(tail + 1, std::memory_order_release);
    enter(1, 0);
  }

  void enter(unsigned submitted, unsigned least) const {
    syscall(SYS_io_uring_enter, fd_, submitted, least, IORING_ENTER_GETEVENTS, nullptr, 0);
  }

  // Returns false if nothing has completed.
  bool next(io_uring_cqe* ended) {
    const unsigned head = *done_head_;
    if (head == std::atomic_ref(*done_tail_).load(std::memory_order_acquire)) return false;
    *ended = done_[head & done_mask_];
    std::atomic_ref(*done_head_).store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  [[nodiscard]] char* map(std::size_t size, std::uint64_t offset) const {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) fail("mmap of a ring");
    return static_cast<char*>(memory);
  }

  int fd_ = -1;
  io_uring_sqe* entries_ = nullptr;
  unsigned* submit_tail_ = nullptr;
  unsigned* order_ = nullptr;
  unsigned submit_mask_ = 0;
  unsigned* done_head_ = nullptr;
  unsigned* done_tail_ = nullptr;
  unsigned done_mask_ = 0;
  io_uring_cqe* done_ = nullptr;
};

class RingPort final : public Port {
 public:
  RingPort(int fd, const Way& way) : fd_(fd), sleeps_(way.wait == Wait::ring_sleep) {
    if (!ring_.usable()) fail("io_uring_setup");
  }

  std::size_t receive(Bytes bytes) override { return step(receiving_, IORING_OP_RECV, bytes); }
  std::size_t send(Bytes bytes) override { return step(sending_, IORING_OP_SEND, bytes); }
  // Polled completions, too, are delivered only by a system call.
  void wait(bool) override { ring_.enter(0, sleeps_ ? 1 : 0); }

 private:
  struct Pending {
    bool under_way = false;
    int result = 0;
  };

  std::size_t step(Pending& pending, std::uint8_t operation, Bytes bytes) {
    if (!pending.under_way) {
      pending.under_way = true;
      ring_.submit(operation, fd_, bytes);
    }
    io_uring_cqe ended;
    while (ring_.next(&ended)) (ended.user_data == IORING_OP_RECV ? receiving_ : sending_).result = ended.res;
    if (pending.result < 0) {
      errno = -pending.result;
      fail("io_uring");
    }
    if (pending.result == 0) return 0;
    pending.under_way = false;
    return static_cast<std::size_t>(std::exchange(pending.result, 0));
  }

  int fd_;
  bool sleeps_;
  Ring ring_;
  Pending receiving_;
  Pending sending_;
};

void receive_all(Port& port, Bytes bytes) {
  while (!bytes.empty()) {
    const std::size_t size = port.receive(bytes);
    if (size == 0) port.wait(false);
    bytes = bytes.subspan(size);
  }
}

void send_all(Port& port, Bytes bytes) {
  while (!bytes.empty()) {
    const std::size_t size = port.send(bytes);
    if (size == 0) port.wait(true);
    bytes = bytes.subspan(size);
  }
}

// Microseconds of a round trip. Rank 0 decides when the measurement ends and states it in the first byte.
double ping_pong(Port& port, int rank, double seconds) {
  std::array<char, 72> message{};
  std::uint64_t trips = 0;
  const auto start = Clock::now();
  while (true) {
    if (rank == 0) message[0] = trips % 64 == 0 && seconds_since(start) > seconds ? 1 : 0;
    if (rank == 0) send_all(port, message);
    receive_all(port, message);
    if (rank != 0) send_all(port, message);
    ++trips;
    if (message[0] != 0) return seconds_since(start) / static_cast<double>(trips) * 1e6;
  }
}

// Gigabytes per second in each direction, both at once.
double stream(Port& port, std::size_t frame, std::size_t total) {
  std::vector<char> out(frame, 1);
  std::vector<char> in(frame);
  std::size_t sent = 0;
  std::size_t received = 0;
  std::size_t in_frame = 0;
  const auto start = Clock::now();
  while (sent < total || received < total) {
    std::size_t moved = 0;
    if (received < total) moved += port.receive(Bytes(in).first(std::min(frame, total - received)));
    received += moved;
    if (sent < total) {
      const std::size_t size = port.send(Bytes(out).subspan(in_frame, std::min(frame - in_frame, total - sent)));
      sent += size;
      in_frame = (in_frame + size) % frame;
      moved += size;
    }
    if (moved == 0) port.wait(sent < total);
  }
  return static_cast<double>(total) / seconds_since(start) / 1e9;
}

// Returns both ends of a loopback connection.
std::array<int, 2> connected_pair() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, general, size) != 0 || listen(listener, 1) != 0 || getsockname(listener, general, &size) != 0)
    fail("listen");
  const int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(one, general, size) != 0) fail("connect");
  const int other = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  close(listener);
  for (const int fd : {one, other}) switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
  return {one, other};
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Figures {
  double value;
  double cpu;  // share of one core that rank 0 used
};

// Runs body(port, rank) in two processes and returns rank 0's result.
template <class Body>
Figures measure(const Way& way, Body body) {
  auto* shared = static_cast<Figures*>(seto::limit::map_shared(sizeof(Figures)));
  std::fflush(stdout);
  const pid_t job = fork();
  if (job == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto ends = connected_pair();
    const int rank = seto::limit::fork_ranks(2);
    const int fd = ends[static_cast<std::size_t>(rank)];
    std::unique_ptr<Port> port;
    if (way.wait == Wait::ring_spin || way.wait == Wait::ring_sleep) {
      port = std::make_unique<RingPort>(fd, way);
    } else {
      port = std::make_unique<SocketPort>(fd, way);
    }
    const double cpu = cpu_seconds();
    const auto start = Clock::now();
    const double value = body(*port, rank);
    if (rank == 0) *shared = {value, (cpu_seconds() - cpu) / seconds_since(start)};
    _exit(seto::limit::join_ranks(rank, true) ? 0 : 1);
  }
  int state = 0;
  const bool good = job > 0 && waitpid(job, &state, 0) == job && state == 0;
  const Figures figures = good ? *shared : Figures{0, 0};
  munmap(shared, sizeof(Figures));
  return figures;
}

// Returns the median of three runs.
template <class Body>
Figures median(const Way& way, Body body) {
  std::array<Figures, 3> runs{};
  for (Figures& run : runs) run = measure(way, body);
  std::sort(runs.begin(), runs.end(), [](const Figures& a, const Figures& b) { return a.value < b.value; });
  return runs[1];
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 1;
  if (seconds <= 0) return std::fprintf(stderr, "usage: %s [SECONDS]\n", words[0]), 2;
  const std::array<Way, 8> ways = {{{"spin", Wait::spin, false, false},
                                    {"spin, quickack", Wait::spin, false, true},
                                    {"epoll 0", Wait::epoll_look, false, false},
                                    {"epoll", Wait::epoll_sleep, false, false},
                                    {"uring spin", Wait::ring_spin, false, false},
                                    {"uring", Wait::ring_sleep, false, false},
                                    {"spin, zero copy", Wait::spin, true, false},
                                    {"epoll, zero copy", Wait::epoll_sleep, true, false}}};
  const bool has_ring = Ring().usable();
  if (!has_ring) std::printf("io_uring: %s: not measured\n", std::strerror(errno));
  std::printf("%-18s %14s %18s %18s\n%-18s %14s %18s %18s\n", "", "72 B", "64 KiB both ways", "256 KiB both ways", "",
              "round trip us", "GB/s each (cpu)", "GB/s each (cpu)");
  for (const Way& way : ways) {
    if (!has_ring && (way.wait == Wait::ring_spin || way.wait == Wait::ring_sleep)) continue;
    const auto trip = median(way, [seconds](Port& port, int rank) { return ping_pong(port, rank, seconds); });
    const auto total = static_cast<std::size_t>(seconds * 2e9);
    const auto small = median(way, [total](Port& port, int) { return stream(port, 64 << 10, total); });
    const auto large = median(way, [total](Port& port, int) { return stream(port, 256 << 10, total); });
    std::printf("%-18s %14.2f %10.2f (%4.2f) %10.2f (%4.2f)\n", way.name, trip.value, small.value, small.cpu, large.value,
                large.cpu);
    std::fflush(stdout);
  }
  return 0;
}
