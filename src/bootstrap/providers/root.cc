#include "src/bootstrap/providers/root.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "src/bootstrap/providers/local_rendezvous.h"
#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/bootstrap/providers/root_file.h"
#include "src/bootstrap/providers/single_rank.h"
#include "src/bootstrap/rendezvous/secret_probe.h"
#include "src/bootstrap/rendezvous/servers.h"

namespace seto {
namespace {

constexpr std::string_view kFile = "file:";
constexpr std::string_view kId = "id:";

using Request = RendezvousBootstrap::Request;
using ConnectFailure = RendezvousBootstrap::ConnectFailure;

Result<std::unique_ptr<Bootstrap>> as_pointer(Result<RendezvousBootstrap> joined) {
  if (!joined.ok()) return joined.status();
  return std::unique_ptr<Bootstrap>(std::make_unique<RendezvousBootstrap>(std::move(joined).value()));
}

// The name under which this process stores its server of a root.
std::string name_of(const RootJoin& join) { return join.root + '\n' + join.job; }

Request request_of(const RootJoin& join, Request request = {}) {
  request.number = join.number;
  request.rank = join.rank;
  request.size = join.ranks;
  request.network = join.network;
  return request;
}

// ---- host:port

bool is_of_this_machine(const std::string& host) {
  const auto number = parse_host(host);
  return number ? number->is_loopback() : host == "localhost";
}

Status check_secret(const RootJoin& join) {
  if (join.secret || join.allow_no_secret) return {};
  return failure(
      Code::invalid_usage,
      "SETO_ROOT=%s is reached over a network, and without a secret nothing proves that a peer belongs to the job: name a file "
      "with a secret in "
      "SETO_SECRET_FILE, the same for every rank, or set SETO_ALLOW_NO_SECRET=1 where every host of the network is trusted",
      join.root.c_str());
}

// Without a secret, which the user allowed, the names of jobs keep them apart. Names prove nothing.
Secret key_of(const RootJoin& join) {
  if (join.secret) return join.secret->derive("seto root", name_of(join));
  return join.job.empty() ? Secret() : Secret::of_text("seto job " + join.job);
}

// A host name may have another address here than elsewhere (127.0.1.1, the address of a service). So the server listens on all
// addresses of this machine, or on those that SETO_INTERFACE allows.
Result<std::vector<SocketAddress>> own_addresses(const RootJoin& join, const HostPort& where) {
  if (const auto number = parse_host(where.host)) return std::vector{number->with_port(where.port)};
  std::vector<SocketAddress> addresses;
  if (where.host == "localhost") {
    addresses = {parse_host("127.0.0.1").value(), parse_host("::1").value()};
  } else if (join.network.interfaces.empty()) {
    addresses = {any_address(AddressFamily::ipv6)};
  } else {
    SETO_ASSIGN(const std::vector<Interface> all, list_interfaces());
    SETO_ASSIGN(addresses, candidates(all, join.network.interfaces));
  }
  for (SocketAddress& address : addresses) address.port = where.port;
  return addresses;
}

Result<RootServer> serve_at(const RootJoin& join, const HostPort& where) {
  SETO_ASSIGN(std::vector<SocketAddress> addresses, own_addresses(join, where));
  auto listeners = Listeners::open_at(addresses);
  if (!listeners.ok() && addresses.front().is_any())
    listeners = Listeners::open_at({any_address(AddressFamily::ipv4).with_port(where.port)});
  if (const PortRange& ports = join.network.ports;
      !listeners.ok() && ports.first != 0 && where.port >= ports.first && where.port <= ports.last)
    return failure(listeners.status().code(),
                   "port %u of SETO_ROOT=%s lies inside SETO_PORTS=%u-%u, and a process of this host listens there, perhaps this "
                   "one: take a port outside the range",
                   unsigned{where.port}, join.root.c_str(), unsigned{ports.first}, unsigned{ports.last});
  if (!listeners.ok()) {
    return failure(listeners.status().code(), "rank %d cannot listen at SETO_ROOT=%s, which must name the host of rank 0: %s",
                   join.rank, join.root.c_str(), std::string(listeners.status().text()).c_str());
  }
  RootServer made;
  made.address = listeners->address();
  for (SocketAddress& address : made.address.addresses) {
    if (address.is_any()) address = parse_host("127.0.0.1")->with_port(address.port);
  }
  SETO_ASSIGN(made.server, RendezvousServer::start(
                               std::move(listeners).value(),
                               {key_of(join), UniqueId::Serves::job, Deadline::never(), {}, kShutdownMs, join.network.tls}));
  return made;
}

constexpr const char* kSameForAll = "set SETO_SECRET_FILE or SETO_SECRET for every rank, or for none";

// The name under which ranks without a secret join for this root.
std::string local_job_of(const RootJoin& join) { return "root " + name_of(join); }

// Every user of this machine can connect to one of its ports, and without a secret a peer proves nothing. Ranks of one user need
// no port: they connect over local sockets, where the kernel reports the user of the other end. Over these they may also agree on
// a secret.
Result<std::unique_ptr<Bootstrap>> join_on_machine(const RootJoin& join, const HostPort& where, Deadline until) {
  // A rank 0 with a secret serves the port. This rank probes it twice: now, and again after its own wait, because rank 0 may
  // start later.
  SecretProbe probe{{}, key_of(join), join.rank};
  SETO_ASSIGN(probe.where.addresses, own_addresses(join, where));
  const bool asks = join.rank != 0;
  bool other = asks && finds_another_secret(probe);
  auto joined = join_local_rendezvous(local_job_of(join), join.rank, join.ranks, join.number, until);
  if (joined.ok() || joined.status().code() != Code::timeout) return joined;
  other = (asks && finds_another_secret(probe)) || other;
  const std::string why(joined.status().text());
  if (other)
    return failure(Code::timeout, "%s; rank 0 at SETO_ROOT=%s has a secret, but rank %d has none: %s", why.c_str(),
                   join.root.c_str(), join.rank, kSameForAll);
  return failure(Code::timeout,
                 "%s (SETO_ROOT=%s without a secret is for ranks of one machine and user; none of them may have a secret)",
                 why.c_str(), join.root.c_str());
}

// Finds ranks without a secret that wait for this rank on the same machine.
class RanksWithoutSecret final {
 public:
  RanksWithoutSecret(const RootJoin& join, const Secret& key)
      : probe_{{local_rendezvous_name(local_job_of(join)), {}}, key, join.rank} {}

  // Probes until it has found some, because they may start later.
  [[nodiscard]] bool found() {
    found_ = found_ || finds_another_secret(probe_);
    return found_;
  }
  [[nodiscard]] static std::string text() {
    return std::string("ranks without a secret wait for this one on the same machine: ") + kSameForAll;
  }

 private:
  SecretProbe probe_;
  bool found_ = false;
};

// Rank 0 of a machine with a secret.
Result<std::unique_ptr<Bootstrap>> join_own_server(Request request, RanksWithoutSecret& others, Deadline until) {
  const bool before = others.found();
  auto joined = as_pointer(RendezvousBootstrap::join(std::move(request), until));
  if (joined.ok() || joined.status().code() != Code::timeout || !(before || others.found())) return joined;
  return failure(Code::timeout, "%s; %s", std::string(joined.status().text()).c_str(), RanksWithoutSecret::text().c_str());
}

Result<std::unique_ptr<Bootstrap>> join_at(const RootJoin& join, Deadline until) {
  auto where = parse_host_port(join.root);
  if (!where.ok() || where->port == 0) {
    return failure(Code::invalid_argument,
                   "SETO_ROOT=%.200s is not the address of a root: write host:port of rank 0, file:PATH or id:HEX",
                   join.root.c_str());
  }
  if (!join.secret && is_of_this_machine(where->host)) return join_on_machine(join, *where, until);
  SETO_TRY(check_secret(join));
  Request request = request_of(join);
  request.key = key_of(join);
  if (join.secret) request.job_secret = request.key.derive("seto job");
  request.unreachable_text = "rank 0 does not answer at SETO_ROOT=" + join.root + "; check that it was started, and on that host";
  request.goal = "rank 0 at SETO_ROOT=" + join.root;
  std::optional<RanksWithoutSecret> without_secret;
  if (is_of_this_machine(where->host)) without_secret.emplace(join, request.key);
  if (join.rank == 0) {
    SETO_ASSIGN(const RootServer* served, root_server(name_of(join), until, [&] { return serve_at(join, *where); }));
    request.server = served->address;
    return without_secret ? join_own_server(std::move(request), *without_secret, until)
                          : as_pointer(RendezvousBootstrap::join(std::move(request), until));
  }
  SETO_ASSIGN(request.server.addresses, resolve(*where, until));
  return as_pointer(RendezvousBootstrap::join(std::move(request), until, [&](Request& next, ConnectFailure failed_by) {
    const bool known = next.unreachable_text.find(RanksWithoutSecret::text()) != std::string::npos;
    if (without_secret && !known && failed_by == ConnectFailure::not_listening && without_secret->found())
      next.unreachable_text += "; " + RanksWithoutSecret::text();
    return failed_by == ConnectFailure::not_listening ||
           failed_by == ConnectFailure::silent;  // in the other cases a foreign process listens there, and waiting would not help
  }));
}

// ---- file:PATH

void take_id(Request& request, const RootJoin& join, const UniqueId& id) {
  request.server = id.address;
  request.key = rendezvous_key(id.token);
  if (!join.job.empty()) request.key = request.key.derive("seto job name", join.job);
  if (join.secret) request.key = request.key.derive("seto secret", join.secret->bytes());
  request.job_secret = request.key.derive("seto job");
}

Result<RootServer> serve_by_file(const RootJoin& join, const std::string& path, Deadline until) {
  SETO_TRY(check_unused(path, until));
  SETO_ASSIGN(Listeners listeners, Listeners::open(join.network, Listeners::Reach::network));
  const UniqueId id{UniqueId::Serves::job, random_token(), listeners.address()};
  Request request;
  take_id(request, join, id);
  RootServer made;
  made.id = encode(id);
  SETO_ASSIGN(made.server, RendezvousServer::start(std::move(listeners), {request.key, UniqueId::Serves::job, Deadline::never(),
                                                                          presence_key(id), kShutdownMs, join.network.tls}));
  SETO_TRY(write_root_file(path, made.id));
  made.at_exit = [path, bytes = made.id] { remove_root_file(path, bytes); };
  return made;
}

Result<std::unique_ptr<Bootstrap>> join_by_file(const RootJoin& join, Deadline until) {
  const std::string path = join.root.substr(kFile.size());
  if (path.empty()) return failure(Code::invalid_argument, "SETO_ROOT=file: has no path: write file:PATH");
  Request request = request_of(join);
  request.unreachable_text =
      "rank 0 does not answer by SETO_ROOT=" + join.root + "; check that it was started, and that it sees the same file";
  if (join.rank == 0) {
    SETO_ASSIGN(const RootServer* served, root_server(name_of(join), until, [&] { return serve_by_file(join, path, until); }));
    SETO_ASSIGN(const UniqueId id, decode(served->id));
    take_id(request, join, id);
    return as_pointer(RendezvousBootstrap::join(std::move(request), until));
  }
  SETO_ASSIGN(UniqueId id, wait_for_root_file(path, join.rank, until));
  take_id(request, join, id);
  // The file of an earlier job stays until rank 0 of this job writes its own, and any process may listen at the address in it. So
  // every failure is tried again with the file as it is then.
  return as_pointer(RendezvousBootstrap::join(std::move(request), until, [&](Request& next, ConnectFailure) {
    auto now = read_root_file(path);
    if (now.ok()) take_id(next, join, *now);
    return true;
  }));
}

// ---- id:HEX

Result<std::unique_ptr<Bootstrap>> join_by_id(const RootJoin& join, Deadline until) {
  auto bytes = parse_unique_id(std::string_view(join.root).substr(kId.size()));
  auto id = bytes.ok() ? decode(*bytes) : Result<UniqueId>(bytes.status());
  if (!id.ok()) return failure(Code::invalid_argument, "SETO_ROOT: %s", std::string(id.status().text()).c_str());
  return as_pointer(RendezvousBootstrap::join(request_of(join, RendezvousBootstrap::request_for(*id)), until));
}

// Adds the root, so that a rank that was started with a wrong one can be found.
Status with_root(const Status& failed, const std::string& root) {
  if (failed.text().find(root) != std::string_view::npos) return failed;
  return {failed.code(), std::string(failed.text()) + " (the ranks join at " + root + ")"};
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_root(const RootJoin& join, Deadline until) {
  if (join.ranks == 1 && join.rank == 0) return std::unique_ptr<Bootstrap>(std::make_unique<SingleRankBootstrap>());
  if (join.root.starts_with(kId)) return join_by_id(join, until);
  auto joined = join.root.starts_with(kFile) ? join_by_file(join, until) : join_at(join, until);
  if (!joined.ok()) return with_root(joined.status(), join.root);
  return joined;
}

}  // namespace seto
