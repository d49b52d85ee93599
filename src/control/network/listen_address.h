#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/net/address.h"
#include "src/net/token.h"

namespace seto {

// More than any machine needs; only the best addresses up to this number are encoded.
inline constexpr std::size_t kListenAddressLimit = 32;

// The TCP address of a process, as its peers receive it.
struct ListenAddress {
  Token process{};                        // identifies the process: random, proved by the handshake, not secret
  std::string library;                    // its library version
  std::vector<SocketAddress> candidates;  // the addresses at which it listens, best first
  bool dial_only = false;                 // other networks do not reach them: it calls instead
};
[[nodiscard]] std::string encode(const ListenAddress& address);
[[nodiscard]] Result<ListenAddress> decode_listen_address(const std::string& bytes);

}  // namespace seto
