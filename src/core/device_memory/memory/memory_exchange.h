#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

// Ranks in several processes of a host give each other memory of their GPUs as file descriptors, over local sockets of one user.
class MemoryExchange final {
 public:
  struct Peer {
    Rank rank = 0;
    std::uint64_t token = 0;
  };
  struct Received {
    PrivateFd file;  // invalid: that rank has none
    std::size_t size = 0;
  };

  // Listens. The others reach this rank when they have its token.
  static Result<std::unique_ptr<MemoryExchange>> open(std::uint64_t token);

  // The peers call it too. Sends the descriptor and the size of its memory to each of them, and returns theirs, in their order.
  // `file`: -1 tells them that this rank has none.
  Result<std::vector<Received>> exchange(Rank rank, int file, std::size_t size, std::span<const Peer> peers, Deadline until);

 private:
  struct Packet;

  explicit MemoryExchange(PrivateFd listener) : listener_(std::move(listener)) {}
  static Status send(const Packet& packet, int file, const Peer& peer, Deadline until);
  // Takes one packet of a connection.
  static Result<Packet> receive(const PrivateFd& socket, PrivateFd& file, Deadline until);

  PrivateFd listener_;
};

}  // namespace seto
