#include "tests/support/cut_wires.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "src/base/clock.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

constexpr std::size_t kChunk = 32 << 10;
constexpr std::size_t kHeld = 256 << 10;  // bytes in one direction

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

void reset(PrivateFd& fd) {
  const linger at_once{1, 0};
  if (fd.get() >= 0) (void)setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd = PrivateFd();
}

}  // namespace

CutWires::~CutWires() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
  for (const auto& wire : wires_)
    for (PrivateFd& end : wire->ends) reset(end);  // no port waits for late segments
}

// Most cuts come after some frames, some within the first header.
std::uint64_t CutWires::some_bytes() { return random_() % 4 == 0 ? random_() % 300 : random_() % (std::uint64_t{1} << 20); }

CutWires::Ends CutWires::add(Renew renew) {
  auto wire = std::make_unique<Wire>();
  wire->renew = std::move(renew);
  wire->left = 300 + some_bytes();
  Ends ends = connect(*wire);
  wires_.push_back(std::move(wire));
  return ends;
}

void CutWires::start() {
  thread_ = std::thread([this] { run(); });
}

CutWires::Ends CutWires::connect(Wire& wire) {
  auto [one, here] = connected_over_loopback();
  auto [other, there] = connected_over_loopback();
  wire.ends[0] = std::move(here);
  wire.ends[1] = std::move(there);
  for (Direction& each : wire.to) each = {};
  wire.renew_ns = 0;
  Ends ends{SecureStream(std::move(one)), SecureStream(std::move(other))};
  if (encrypted_) encrypt(wire, ends);
  return ends;
}

void CutWires::encrypt(Wire& wire, Ends& ends) {
  const Secret key = Secret::random();
  must(ends.one.encrypt(TlsSession::Role::caller, key).ok() && ends.other.encrypt(TlsSession::Role::answerer, key).ok(), "TLS");
  const Deadline until = Deadline::after_ms(60'000);
  for (bool here = false, there = false; !here || !there;) {
    must(!until.passed(), "the handshake of TLS");
    here = ends.one.advance().value();
    there = ends.other.advance().value();
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) carry(wire, from, false);
  }
}

// Bytes that come at one end leave at the other.
void CutWires::carry(Wire& wire, std::size_t from, bool counted) {
  Direction& direction = wire.to[1 - from];
  std::array<char, kChunk> bytes;
  if (!direction.ended && direction.bytes.size() < kHeld) {
    const ssize_t got = recv(wire.ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) direction.ended = true;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return cut(wire);  // an end has reset it
    if (got > 0) direction.bytes.append(bytes.data(), static_cast<std::size_t>(got));
  }
  std::size_t wanted = direction.bytes.size();
  const bool last = counted && !sparing_.load() && wanted >= wire.left;
  if (last) wanted = static_cast<std::size_t>(wire.left);
  const ssize_t sent =
      wanted == 0 ? 0 : send(wire.ends[1 - from].get(), direction.bytes.data(), wanted, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return cut(wire);
  if (sent > 0) direction.bytes.erase(0, static_cast<std::size_t>(sent));
  if (counted && sent > 0) wire.left -= std::min<std::uint64_t>(wire.left, static_cast<std::uint64_t>(sent));
  if (last && sent == static_cast<ssize_t>(wanted)) {
    cuts_.fetch_add(1);
    return cut(wire);
  }
  if (direction.ended && direction.bytes.empty() && !std::exchange(direction.told, true))
    (void)shutdown(wire.ends[1 - from].get(), SHUT_WR);
}

void CutWires::cut(Wire& wire) {
  for (PrivateFd& end : wire.ends) reset(end);
  wire.renew_ns = monotonic_ns() + random_() % 3'000'000;
  wire.left = some_bytes();
}

void CutWires::run() {
  while (!stop_.load()) {
    std::vector<pollfd> waits;
    for (const auto& wire : wires_) {
      if (wire->renew_ns == ~std::uint64_t{0}) continue;
      if (wire->renew_ns != 0) {
        if (monotonic_ns() < wire->renew_ns) continue;
        Ends ends = connect(*wire);
        if (!wire->renew(std::move(ends), ++wire->attempt)) wire->renew_ns = ~std::uint64_t{0};
        continue;
      }
      for (std::size_t from = 0; from < 2 && wire->renew_ns == 0; ++from) carry(*wire, from, true);
      for (std::size_t end = 0; end < 2 && wire->renew_ns == 0; ++end) {
        const bool reads = !wire->to[1 - end].ended && wire->to[1 - end].bytes.size() < kHeld;
        const auto events = static_cast<short>((reads ? POLLIN : 0) | (wire->to[end].bytes.empty() ? 0 : POLLOUT));
        if (events != 0) waits.push_back({wire->ends[end].get(), events, 0});
      }
    }
    (void)poll(waits.data(), waits.size(), 1);
  }
}

}  // namespace seto::support
