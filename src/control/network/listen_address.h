#pragma once

#include <cstddef>
#include <cstdint>
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
  std::vector<std::uint8_t> paths = {};   // of the first candidates: the number of a path in SETO_PATHS, from 1; 0: of none

  [[nodiscard]] std::uint8_t path_of(std::size_t candidate) const { return candidate < paths.size() ? paths[candidate] : 0; }
  // How many paths SETO_PATHS has there.
  [[nodiscard]] std::uint32_t path_count() const;
};
[[nodiscard]] std::string encode(const ListenAddress& address);
[[nodiscard]] Result<ListenAddress> decode_listen_address(const std::string& bytes);

}  // namespace seto
