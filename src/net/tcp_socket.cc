#include "src/net/tcp_socket.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_socket.h"
#include "src/net/traffic_class.h"

namespace seto {
namespace {

constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 3;
// With several addresses and no range, the port chosen at the first address may be taken at another.
constexpr int kFreePortAttempts = 32;

int domain_of(const SocketAddress& address) { return address.family == AddressFamily::ipv4 ? AF_INET : AF_INET6; }

Status set_option(int fd, int level, int name, int value) {
  if (setsockopt(fd, level, name, &value, sizeof value) == 0) return {};
  return socket_failure("cannot set an option of a TCP socket");
}

bool address_is_gone(int error) { return error == EADDRNOTAVAIL || error == ENODEV || error == EAFNOSUPPORT; }

// Invalid with errno if the port is taken or the address has disappeared; a failure for anything else.
Result<PrivateFd> listen_at(const SocketAddress& address, int backlog) {
  PrivateFd fd(Fd(socket(domain_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd.valid()) {
    if (errno == EAFNOSUPPORT) return PrivateFd();
    return socket_failure("cannot open a TCP socket");
  }
  // Allows a port with connections in TIME_WAIT; a port with another listener stays taken.
  SETO_TRY(set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1));
  if (address.family == AddressFamily::ipv6) SETO_TRY(set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, address.is_any() ? 0 : 1));
  mark_traffic(fd.get(), TrafficClass::control);  // of the first answer of a handshake
  const NativeAddress where = native(address);
  if (bind(fd.get(), where.get(), where.size) == 0 && listen(fd.get(), backlog) == 0) return fd;
  const int error = errno;
  if (error == EADDRINUSE || address_is_gone(error)) {
    fd.close();
    errno = error;
    return fd;
  }
  return socket_failure(("cannot listen at " + to_text(address)).c_str());
}

// Listens at all addresses on one port. Empty result: the port is taken at one of them.
Result<TcpListener> listen_at_port(const std::vector<SocketAddress>& addresses, std::uint16_t port, int backlog) {
  TcpListener listener;
  for (const SocketAddress& address : addresses) {
    SETO_ASSIGN(PrivateFd fd, listen_at(address.with_port(port), backlog));
    if (!fd.valid() && errno == EADDRINUSE) return TcpListener();
    if (!fd.valid()) {
      SETO_LOG(warn, "not listening at %s: %s", host_text(address).c_str(), std::strerror(errno));
      continue;
    }
    SETO_ASSIGN(const SocketAddress bound, local_address(fd.get()));
    port = bound.port;
    listener.sockets.push_back(std::move(fd));
    listener.addresses.push_back(address.with_port(port));
  }
  if (!listener.sockets.empty()) return listener;
  return failure(Code::unavailable, "cannot listen at %s: this machine does not have the address, or not any more",
                 to_text(addresses).c_str());
}

constexpr std::string_view kRefused = "no process listens at ";

Status not_connected(const SocketAddress& address, int error) {
  if (error == ECONNREFUSED) return {Code::remote_error, std::string(kRefused) + to_text(address)};
  if (error == ETIMEDOUT) return no_answer(address);
  errno = error;
  if (error == EMFILE || error == ENFILE) return socket_failure("cannot open a TCP socket");
  return system_failure(Code::remote_error, "cannot reach %s", to_text(address).c_str());
}

Result<SocketAddress> address_by(int (*get)(int, sockaddr*, socklen_t*), int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (get(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return socket_failure("cannot read the address of a socket");
  const auto address = from_native(reinterpret_cast<const sockaddr*>(&storage));
  if (!address) return failure(Code::internal, "a socket of family %d is not a TCP socket", storage.ss_family);
  return *address;
}

}  // namespace

Result<PortRange> parse_ports(std::string_view text) {
  if (text.empty()) return PortRange{};
  const std::size_t dash = text.find('-');
  const auto first = parse_uint(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_uint(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last > 65'535 || *first > *last) {
    return failure(Code::invalid_argument, "SETO_PORTS: '%.100s' is not a range of ports; write first-last, as 20000-20099",
                   std::string(text).c_str());
  }
  return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

Result<TcpListener> listen_tcp(const std::vector<SocketAddress>& addresses, PortRange ports, int backlog) {
  if (addresses.empty()) return failure(Code::internal, "no address to listen at was given");
  if (ports.first == 0) {
    for (int attempt = 0; attempt < kFreePortAttempts; ++attempt) {
      SETO_ASSIGN(TcpListener listener, listen_at_port(addresses, 0, backlog));
      if (!listener.sockets.empty()) return listener;
    }
    return failure(Code::unavailable, "cannot listen at %s: no port is free", to_text(addresses).c_str());
  }
  for (unsigned port = ports.first; port <= ports.last; ++port) {
    SETO_ASSIGN(TcpListener listener, listen_at_port(addresses, static_cast<std::uint16_t>(port), backlog));
    if (!listener.sockets.empty()) return listener;
  }
  if (ports.first == ports.last) {
    return failure(Code::unavailable, "port %u is taken: another process listens on it", unsigned{ports.first});
  }
  return failure(Code::unavailable, "every port from %u to %u is taken, all %u of them: give a larger range",
                 unsigned{ports.first}, unsigned{ports.last}, unsigned{ports.last} - ports.first + 1);
}

PrivateFd accept_tcp(const PrivateFd& listener) {
  PrivateFd fd(Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (!fd.valid()) return fd;
  // A connection that the peer has closed already refuses options; the first read reports it.
  static_cast<void>(tune_tcp(fd.get()).ok());
  return fd;
}

Result<PrivateFd> begin_connect(const SocketAddress& address, const SocketAddress* from, int longest_segment) {
  PrivateFd fd(Fd(socket(domain_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd.valid()) return errno == EAFNOSUPPORT ? not_connected(address, errno) : socket_failure("cannot open a TCP socket");
  SETO_TRY(tune_tcp(fd.get()));
  if (from != nullptr) {
    const NativeAddress source = native(from->with_port(0));
    SETO_TRY(set_option(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1));
    if (bind(fd.get(), source.get(), source.size) != 0) return not_connected(*from, errno);
  }
  if (longest_segment > 0) SETO_TRY(set_option(fd.get(), IPPROTO_TCP, TCP_MAXSEG, longest_segment));
  const NativeAddress where = native(address);
  int answer = 0;
  do {
    answer = connect(fd.get(), where.get(), where.size);
  } while (answer != 0 && errno == EINTR);
  if (answer != 0 && errno != EINPROGRESS) return not_connected(address, errno);
  return fd;
}

bool is_refusal(const Status& failed) { return failed.text().starts_with(kRefused); }

Status end_connect(const PrivateFd& fd, const SocketAddress& address) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return not_connected(address, error);
  auto here = local_address(fd.get());
  auto there = remote_address(fd.get());
  if (!there.ok()) return not_connected(address, ECONNRESET);
  // The kernel may give this socket the local port that it connects to, and so connect it to itself.
  if (here.ok() && *here == *there) return not_connected(address, ECONNREFUSED);
  return {};
}

Result<PrivateFd> connect_tcp(const SocketAddress& address, Deadline until) {
  SETO_ASSIGN(PrivateFd fd, begin_connect(address));
  if (!wait_for(fd.get(), POLLOUT, until).ok()) return no_answer(address);
  SETO_TRY(end_connect(fd, address));
  return fd;
}

Status no_answer(const SocketAddress& address) {
  return failure(Code::timeout, "%s does not answer: a firewall may drop what is sent there", to_text(address).c_str());
}

Status tune_tcp(int fd) {
  mark_traffic(fd, TrafficClass::control);
  SETO_TRY(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1));
  SETO_TRY(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
  SETO_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds));
  SETO_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds));
  SETO_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes));
  return set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kUserTimeoutMs));
}

Result<SocketAddress> local_address(int fd) { return address_by(getsockname, fd); }
Result<SocketAddress> remote_address(int fd) { return address_by(getpeername, fd); }

}  // namespace seto
