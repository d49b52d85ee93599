#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/fork.h"
#include "src/net/tls/secure_stream.h"

namespace seto::support {

// Carries the bytes of connections between pairs of sockets, on a thread of its own, and cuts connections at random bytes: both
// ends get a reset, and what is on its way is lost. Each connection is made again soon.
class CutWires final {
 public:
  struct Ends {
    SecureStream one, other;
  };
  // Takes the ends of a connection that was made again. Without the lock of this object. False: no one needs it any more.
  using Renew = std::function<bool(Ends ends, std::uint32_t attempt)>;

  CutWires(std::uint64_t seed, bool encrypted) : random_(seed), encrypted_(encrypted) {}
  ~CutWires();

  // A new connection, which is cut from start() on. The result are its ends.
  [[nodiscard]] Ends add(Renew renew);
  void start();
  // No connection is cut any more; those that are cut are made again.
  void spare() { sparing_.store(true); }
  [[nodiscard]] std::uint64_t cuts() const { return cuts_.load(); }

 private:
  struct Direction {
    std::string bytes;  // that were read and not written
    bool ended = false, told = false;
  };
  struct Wire {
    PrivateFd ends[2];
    Direction to[2];         // by end
    std::uint64_t left = 0;  // bytes until it is cut
    std::uint32_t attempt = 0;
    std::uint64_t renew_ns = 0;  // 0: it is whole
    Renew renew;
  };

  [[nodiscard]] Ends connect(Wire& wire);
  void carry(Wire& wire, std::size_t from, bool counted);
  void cut(Wire& wire);
  void encrypt(Wire& wire, Ends& ends);
  void run();
  [[nodiscard]] std::uint64_t some_bytes();

  std::mt19937_64 random_;
  const bool encrypted_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::atomic<bool> stop_{false}, sparing_{false};
  std::atomic<std::uint64_t> cuts_{0};
  std::thread thread_;
};

}  // namespace seto::support
