#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/control/network/listen_address.h"
#include "src/net/address.h"

namespace seto {

// Remembers the address at which each process was reached. Any thread.
class ReachedAddresses final {
 public:
  // Beyond this number of processes all entries are dropped.
  static constexpr std::size_t kLimit = 65'536;

  [[nodiscard]] std::optional<SocketAddress> found(const Token& process) const;
  void remember(const Token& process, const SocketAddress& address);
  // The addresses to try for a process, in this order.
  [[nodiscard]] Result<std::vector<SocketAddress>> addresses_of(const ListenAddress& remote) const;
  // The same, with those of a path (SETO_PATHS, from 1; 0: of none in particular) first, which are so many.
  struct AlongPath {
    std::vector<SocketAddress> addresses;
    std::size_t of_path = 0;
  };
  [[nodiscard]] Result<AlongPath> addresses_along(const ListenAddress& remote, std::uint8_t path) const;

 private:
  mutable std::mutex mutex_;
  std::map<Token, SocketAddress> found_;
};

}  // namespace seto
