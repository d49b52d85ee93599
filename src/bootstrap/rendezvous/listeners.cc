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

Result<Listeners> Listeners::open(const NetworkChoice& network, Reach reach) {
  Listeners listeners;
  listeners.address_.socket_name = random_socket_name();
  SETO_ASSIGN(PrivateFd local, listen_local(listeners.address_.socket_name, SocketKind::stream));
  listeners.sockets_.push_back(std::move(local));
  listeners.local_count_ = 1;
  if (reach == Reach::machine) return listeners;
  auto peers = listen_for_peers(network, kBacklog);
  if (!peers.ok() && (!network.interfaces.empty() || network.ports.first != 0)) return peers.status();
  if (!peers.ok()) {
    SETO_LOG(info, "rendezvous: only ranks of this machine can join: %s", std::string(peers.status().text()).c_str());
    return listeners;
  }
  // On a machine without a network the TCP listener reaches no rank that the local socket does not reach.
  if (network.interfaces.empty() && only_loopback(peers->reachable)) return listeners;
  for (PrivateFd& socket : peers->listener.sockets) listeners.sockets_.push_back(std::move(socket));
  listeners.address_.addresses = std::move(peers->reachable);
  return listeners;
}

Result<Listeners> Listeners::open_named(const std::string& name) {
  Listeners listeners;
  SETO_ASSIGN(PrivateFd local, listen_local(name, SocketKind::stream));
  listeners.address_.socket_name = name;
  listeners.sockets_.push_back(std::move(local));
  listeners.local_count_ = 1;
  return listeners;
}

Result<Listeners> Listeners::open_at(const std::vector<SocketAddress>& addresses) {
  Listeners listeners;
  SETO_ASSIGN(TcpListener listener, listen_tcp(addresses, {addresses.front().port, addresses.front().port}, kBacklog));
  listeners.sockets_ = std::move(listener.sockets);
  listeners.address_.addresses = std::move(listener.addresses);
  return listeners;
}

Listeners::Caller Listeners::accept(std::size_t listener) const {
  if (listener >= local_count_) {
    Caller caller{accept_tcp(sockets_[listener]), {}};
    if (!caller.fd.valid()) return caller;
    auto address = remote_address(caller.fd.get());
    caller.who = address.ok() ? host_text(*address) : "an unknown address";
    return caller;
  }
  Caller caller{PrivateFd(Fd(accept4(sockets_[listener].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK))), "this machine"};
  if (caller.fd.valid() && !check_same_user(caller.fd.get()).ok()) {
    caller.fd.close();
    errno = ECONNABORTED;
  }
  return caller;
}

}  // namespace seto
