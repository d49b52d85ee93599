// Measures plain TCP sockets that send in both directions at once between two hosts: the yardstick of bench/links.
//
//   duplex_sockets serve ADDRESS PORT SOCKETS WARM_UP_S MEASURED_S         waits for the other, one connection for each socket
//   duplex_sockets call ADDRESS PORT SOCKETS WARM_UP_S MEASURED_S
//
// Both send and receive over all sockets as fast as they take it; each prints JSON: the bytes that it received in a second, after
// the warm-up. Sockets are as the kernel makes them. Links nothing of Seto, so that a defect there cannot hide in its yardstick.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 128 << 10;
constexpr std::size_t kMostSockets = 64;
constexpr int kConnectLimitMs = 10'000;
constexpr int kQuietLimitMs = 5'000;

struct Options {
  sockaddr_in address{};
  std::size_t sockets = 0;
  double warm_up_s = 0, measured_s = 0;
};

bool parse(char** words, Options& options) {
  options.address.sin_family = AF_INET;
  options.address.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(words[1], nullptr, 10)));
  options.sockets = std::strtoul(words[2], nullptr, 10);
  options.warm_up_s = std::strtod(words[3], nullptr);
  options.measured_s = std::strtod(words[4], nullptr);
  return inet_pton(AF_INET, words[0], &options.address.sin_addr) == 1 && options.sockets > 0 && options.sockets <= kMostSockets &&
         options.measured_s > 0;
}

bool failed(const char* what) {
  std::fprintf(stderr, "duplex_sockets: %s: %s\n", what, std::strerror(errno));
  return false;
}

bool is_ready(int fd, short events) {
  pollfd polled{fd, events, 0};
  return poll(&polled, 1, kConnectLimitMs) == 1;
}

bool accept_all(const Options& options, std::vector<int>& fds) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto* address = reinterpret_cast<const sockaddr*>(&options.address);
  if (bind(listener, address, sizeof options.address) != 0 || listen(listener, static_cast<int>(kMostSockets)) != 0) {
    return failed("listening");
  }
  std::puts("listening");
  std::fflush(stdout);
  while (fds.size() < options.sockets) {
    if (!is_ready(listener, POLLIN)) return failed("waiting for the other");
    fds.push_back(accept(listener, nullptr, nullptr));
    if (fds.back() < 0) return failed("accepting");
  }
  close(listener);
  return true;
}

bool connect_all(const Options& options, std::vector<int>& fds) {
  const auto* address = reinterpret_cast<const sockaddr*>(&options.address);
  while (fds.size() < options.sockets) {
    fds.push_back(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(fds.back(), address, sizeof options.address) != 0) return failed("connecting");
  }
  return true;
}

class Duplex final {
 public:
  explicit Duplex(const std::vector<int>& fds) : block_(kBlock) {
    for (const int fd : fds) {
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
      polled_.push_back({fd, POLLIN | POLLOUT, 0});
    }
  }

  // Moves bytes for so long; answers how many came in. The other side may end first, and that is no failure.
  bool run(double seconds, std::uint64_t& received) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    received = 0;
    while (!ended_ && Clock::now() < end) {
      const int ready = poll(polled_.data(), polled_.size(), kQuietLimitMs);
      if (ready < 0) return failed("poll");
      if (ready == 0) {
        errno = ETIMEDOUT;
        return failed("no socket moved anything");
      }
      for (const pollfd& polled : polled_) {
        if ((polled.revents & (POLLIN | POLLHUP | POLLERR)) != 0) received += take(polled.fd);
        if ((polled.revents & POLLOUT) != 0)
          ended_ |= send(polled.fd, block_.data(), block_.size(), MSG_NOSIGNAL) < 0 && is_gone();
      }
    }
    return true;
  }

 private:
  static bool is_gone() { return errno != EAGAIN && errno != EINTR; }

  std::size_t take(int fd) {
    const ssize_t size = recv(fd, block_.data(), block_.size(), 0);
    ended_ |= size == 0 || (size < 0 && is_gone());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }

  std::vector<pollfd> polled_;
  std::vector<char> block_;
  bool ended_ = false;
};

bool measure(const Options& options, const std::vector<int>& fds) {
  Duplex duplex(fds);
  std::uint64_t bytes = 0;
  if (!duplex.run(options.warm_up_s, bytes)) return false;
  const auto start = Clock::now();
  if (!duplex.run(options.measured_s, bytes)) return false;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("{\"sockets\": %zu, \"bytes_per_second\": %.0f}\n", fds.size(), static_cast<double>(bytes) / seconds);
  return true;
}

}  // namespace

int main(int count, char** words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string_view mode = count == 7 ? words[1] : "";
  Options options;
  if ((mode != "serve" && mode != "call") || !parse(words + 2, options)) {
    std::fprintf(stderr, "usage: %s serve|call ADDRESS PORT SOCKETS WARM_UP_S MEASURED_S\n", words[0]);
    return 2;
  }
  std::vector<int> fds;
  const bool connected = mode == "serve" ? accept_all(options, fds) : connect_all(options, fds);
  const bool good = connected && measure(options, fds);
  for (const int fd : fds) close(fd);
  return good ? 0 : 1;
}
