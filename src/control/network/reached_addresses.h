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

// At which of its addresses each process was reached. Any thread.
class AddressBook final {
 public:
  // Beyond it all are found out anew.
  static constexpr std::size_t kLimit = 65'536;

  [[nodiscard]] std::optional<SocketAddress> found(const Token& process) const;
  void remember(const Token& process, const SocketAddress& address);
  // What to try for a process, in this order.
  [[nodiscard]] Result<std::vector<SocketAddress>> addresses_of(const DoorAddress& remote) const;

 private:
  mutable std::mutex mutex_;
  std::map<Token, SocketAddress> found_;
};

}  // namespace seto
