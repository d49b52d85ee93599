#include "src/bootstrap/rendezvous/listeners.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/net/local_socket.h"
#include "src/net/token.h"

namespace seto {
namespace {

constexpr int kBacklog = SOMAXCONN;

bool only_loopback(const std::vector<SocketAddress>& addresses) {
  for (const SocketAddress& address : addresses)
    if (!address.is_loopback()) return false;
  return true;
}

}  // namespace

Result<Doors> Doors::open(const NetworkChoice& network, Reach reach) {
  Doors doors;
  doors.contact_.socket_name = random_socket_name();
  SETO_ASSIGN(PrivateFd local, listen_local(doors.contact_.socket_name, SocketKind::stream));
  doors.sockets_.push_back(std::move(local));
  doors.local_count_ = 1;
  if (reach == Reach::machine) return doors;
  auto peers = listen_for_peers(network, kBacklog);
  if (!peers.ok() && (!network.interfaces.empty() || network.ports.first != 0)) return peers.status();
  if (!peers.ok()) {
    SETO_LOG(info, "rendezvous: for ranks of this machine only: %s", std::string(peers.status().text()).c_str());
    return doors;
  }
  // A machine without a network reaches nobody there whom the local socket does not reach.
  if (network.interfaces.empty() && only_loopback(peers->reachable)) return doors;
  for (PrivateFd& socket : peers->listener.sockets) doors.sockets_.push_back(std::move(socket));
  doors.contact_.addresses = std::move(peers->reachable);
  return doors;
}

Result<Doors> Doors::open_named(const std::string& name) {
  Doors doors;
  SETO_ASSIGN(PrivateFd local, listen_local(name, SocketKind::stream));
  doors.contact_.socket_name = name;
  doors.sockets_.push_back(std::move(local));
  doors.local_count_ = 1;
  return doors;
}

Result<Doors> Doors::open_at(const std::vector<SocketAddress>& addresses) {
  Doors doors;
  SETO_ASSIGN(TcpListener listener, listen_tcp(addresses, {addresses.front().port, addresses.front().port}, kBacklog));
  doors.sockets_ = std::move(listener.sockets);
  doors.contact_.addresses = std::move(listener.addresses);
  return doors;
}

Doors::Caller Doors::accept(std::size_t door) const {
  if (door >= local_count_) {
    Caller caller{accept_tcp(sockets_[door]), {}};
    if (!caller.fd.valid()) return caller;
    auto address = remote_address(caller.fd.get());
    caller.who = address.ok() ? host_text(*address) : "an address that has gone";
    return caller;
  }
  Caller caller{PrivateFd(Fd(accept4(sockets_[door].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))), "this machine"};
  if (caller.fd.valid() && !check_same_user(caller.fd.get()).ok()) {
    caller.fd.close();
    errno = ECONNABORTED;
  }
  return caller;
}

}  // namespace seto
