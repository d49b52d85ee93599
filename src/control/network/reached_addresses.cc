#include "src/control/network/reached_addresses.h"

#include <algorithm>

#include "src/net/interfaces.h"

namespace seto {

std::optional<SocketAddress> ReachedAddresses::found(const Token& process) const {
  const std::lock_guard lock(mutex_);
  const auto entry = found_.find(process);
  if (entry == found_.end()) return std::nullopt;
  return entry->second;
}

void ReachedAddresses::remember(const Token& process, const SocketAddress& address) {
  const std::lock_guard lock(mutex_);
  if (found_.size() >= kLimit) found_.clear();
  found_.insert_or_assign(process, address);
}

Result<std::vector<SocketAddress>> ReachedAddresses::addresses_of(const ListenAddress& remote) const {
  std::vector<SocketAddress> addresses;
  if (const auto known = found(remote.process)) addresses.push_back(*known);
  std::vector<Interface> own;
  for (const SocketAddress& candidate : remote.candidates) {
    if (candidate.is_link_local() && own.empty()) {
      SETO_ASSIGN(own, list_interfaces());
    }
    for (const SocketAddress& address : with_scopes(candidate, own))
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  }
  if (addresses.empty())
    return failure(Code::remote_error,
                   "its process announced only link-local addresses, and no interface here has one: set "
                   "SETO_INTERFACE there, or here");
  return addresses;
}

Result<ReachedAddresses::AlongPath> ReachedAddresses::addresses_along(const ListenAddress& remote, std::uint8_t path) const {
  AlongPath along;
  SETO_ASSIGN(along.addresses, addresses_of(remote));
  if (path == 0) return along;
  const auto is_of_path = [&](const SocketAddress& address) {
    for (std::size_t index = 0; index < remote.candidates.size(); ++index)
      if (remote.candidates[index] == address) return remote.path_of(index) == path;
    return false;
  };
  const auto end = std::stable_partition(along.addresses.begin(), along.addresses.end(), is_of_path);
  along.of_path = static_cast<std::size_t>(end - along.addresses.begin());
  return along;
}

}  // namespace seto
