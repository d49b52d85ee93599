#include "src/core/device_memory/memory/memory_exchange.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::uint64_t kLongestMs = 30'000;  // for all ranks: they come from an exchange at the same time

std::string socket_of(std::uint64_t token) {
  std::array<char, 48> name{};
  std::snprintf(name.data(), name.size(), "seto-workspace-%016llx", static_cast<unsigned long long>(token));
  return name.data();
}

}  // namespace

struct MemoryExchange::Packet {
  std::uint64_t layout = sizeof(Packet) << 8 | 1;
  std::uint64_t size = 0;  // bytes of the memory
  std::int32_t rank = 0;
  std::uint32_t has_memory = 0;
};

Result<std::unique_ptr<MemoryExchange>> MemoryExchange::open(std::uint64_t token) {
  SETO_ASSIGN(PrivateFd listener, listen_local(socket_of(token), SocketKind::packets));
  return std::unique_ptr<MemoryExchange>(new MemoryExchange(std::move(listener)));
}

// Sending needs no peer that accepts, so all ranks send first. A rank that cannot reach one peer still sends to the others, which
// would wait for it.
Result<std::vector<MemoryExchange::Received>> MemoryExchange::exchange(Rank rank, int file, std::size_t size,
                                                                       std::span<const Peer> peers, Deadline until) {
  const Deadline soon = until.sooner_ms(kLongestMs);
  const Packet mine{.size = size, .rank = rank, .has_memory = file >= 0 ? 1U : 0U};
  Status failed;
  for (const Peer& peer : peers) {
    const Status sent = send(mine, file, peer, soon);
    if (failed.ok() && !sent.ok())
      failed = failure(sent.code(),
                       "rank %d cannot be handed memory: %s; containers of one host need the same user and --network=host",
                       peer.rank, std::string(sent.text()).c_str());
  }
  SETO_TRY(failed);
  std::vector<Received> all(peers.size());
  std::vector<bool> has_come(peers.size());
  for (std::size_t left = peers.size(); left > 0;) {
    if (!wait_for(listener_.get(), POLLIN, soon).ok())
      return failure(Code::timeout, "%zu ranks did not hand over their memory", left);
    const PrivateFd socket = accept_local(listener_);
    if (!socket.valid() && errno != EAGAIN && errno != EINTR) return socket_failure("memory of other ranks cannot be taken");
    if (!socket.valid() || !check_same_user(socket.get()).ok()) continue;
    PrivateFd received;
    SETO_ASSIGN(const Packet packet, receive(socket, received, soon));
    const auto found = std::find_if(peers.begin(), peers.end(), [&](const Peer& one) { return one.rank == packet.rank; });
    const auto index = static_cast<std::size_t>(found - peers.begin());
    if (found == peers.end() || has_come[index]) continue;
    has_come[index] = true;
    all[index] = {std::move(received), packet.size};
    --left;
  }
  return all;
}

Status MemoryExchange::send(const Packet& packet, int file, const Peer& peer, Deadline until) {
  SETO_ASSIGN(const PrivateFd socket, connect_local(socket_of(peer.token), SocketKind::packets, until));
  SETO_TRY(check_same_user(socket.get()));
  const std::span<const int> files(&file, file >= 0 ? 1 : 0);
  while (send_packet(socket.get(), std::as_bytes(std::span(&packet, 1)), files) < 0) {
    if (errno == EAGAIN)
      SETO_TRY(wait_for(socket.get(), POLLOUT, until));
    else if (errno != EINTR)
      return socket_failure("its process takes no descriptors");
  }
  return {};
}

Result<MemoryExchange::Packet> MemoryExchange::receive(const PrivateFd& socket, PrivateFd& file, Deadline until) {
  Packet packet;
  ReceivedPacket received;
  do {
    if (!wait_for(socket.get(), POLLIN, until).ok())
      return failure(Code::timeout, "a rank connected and did not hand over its memory");
    received = receive_packet(socket.get(), std::as_writable_bytes(std::span(&packet, 1)));
  } while (received.size < 0 && (errno == EAGAIN || errno == EINTR));
  if (received.lacks_descriptors)
    return failure(Code::unavailable, "this process has no room for a descriptor of memory of another rank: raise ulimit -n");
  const std::size_t files = received.descriptors.size();
  if (received.size != static_cast<ssize_t>(sizeof packet) || packet.layout != Packet().layout || files != packet.has_memory)
    return failure(Code::remote_error, "a rank handed over something that is no memory");
  if (files == 1) file = PrivateFd(std::move(received.descriptors.front()));
  return packet;
}

}  // namespace seto
