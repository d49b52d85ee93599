#include "src/bootstrap/providers/root.h"

#include <algorithm>
#include <utility>

#include "src/bootstrap/named_root.h"
#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/bootstrap/providers/root_file.h"
#include "src/bootstrap/rendezvous/servers.h"
#include "src/bootstrap/providers/single_rank.h"

namespace seto {
namespace {

constexpr std::string_view kFile = "file:";
constexpr std::string_view kId = "id:";

using Request = RendezvousBootstrap::Request;
using Miss = RendezvousBootstrap::Miss;

Result<std::unique_ptr<Bootstrap>> as_pointer(Result<RendezvousBootstrap> joined) {
  if (!joined.ok()) return joined.status();
  return std::unique_ptr<Bootstrap>(std::make_unique<RendezvousBootstrap>(std::move(joined).value()));
}

// The name under which this process remembers what it has at a root.
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
      "SETO_ROOT=%s is reached over a network, and nothing proves who belongs to the job: name a file with a secret in "
      "SETO_SECRET_FILE, the same for every rank, or set SETO_ALLOW_NO_SECRET=1 where everybody on the network is trusted",
      join.root.c_str());
}

// Without a secret, which was allowed, jobs are told apart by their names, which prove nothing.
Secret key_of(const RootJoin& join) {
  if (join.secret) return join.secret->derive("seto root", name_of(join));
  return join.job.empty() ? Secret() : Secret::of_text("seto job " + join.job);
}

// A name may have another address here than elsewhere (127.0.1.1, a service's): so all addresses of this machine are listened on,
// or those that SETO_INTERFACE allows.
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
  auto doors = Doors::open_at(addresses);
  if (!doors.ok() && addresses.front().is_any()) doors = Doors::open_at({any_address(AddressFamily::ipv4).with_port(where.port)});
  if (!doors.ok()) {
    return failure(doors.status().code(), "rank %d cannot serve SETO_ROOT=%s, as rank 0 does on the host of that name: %s",
                   join.rank, join.root.c_str(), std::string(doors.status().text()).c_str());
  }
  RootServer made;
  made.contact = doors->contact();
  for (SocketAddress& address : made.contact.addresses) {
    if (address.is_any()) address = parse_host("127.0.0.1")->with_port(address.port);
  }
  SETO_ASSIGN(made.server, RendezvousServer::start(std::move(doors).value(), {key_of(join), UniqueId::Serves::job}));
  return made;
}

// Every user of this machine reaches a port of it, and there is nothing to prove. Ranks of one user need no port: they meet at
// local sockets, where the kernel says who is at the other end. Over these they may also agree on a secret.
Result<std::unique_ptr<Bootstrap>> join_on_machine(const RootJoin& join, Deadline until) {
  auto joined = join_named("root " + name_of(join), join.rank, join.ranks, join.number, until);
  if (joined.ok() || joined.status().code() != Code::timeout) return joined;
  return failure(Code::timeout,
                 "%s (SETO_ROOT=%s without a secret is for ranks of one machine and user; none of them may have one)",
                 std::string(joined.status().text()).c_str(), join.root.c_str());
}

Result<std::unique_ptr<Bootstrap>> join_at(const RootJoin& join, Deadline until) {
  auto where = parse_host_port(join.root);
  if (!where.ok() || where->port == 0) {
    return failure(Code::invalid_argument, "SETO_ROOT=%.200s is none: write host:port of rank 0, file:PATH or id:HEX",
                   join.root.c_str());
  }
  if (!join.secret && is_of_this_machine(where->host)) return join_on_machine(join, until);
  SETO_TRY(check_secret(join));
  Request request = request_of(join);
  request.key = key_of(join);
  if (join.secret) request.job_secret = request.key.derive("seto job");
  request.nobody = "rank 0 does not answer at SETO_ROOT=" + join.root + "; see whether it was started, and on that host";
  if (join.rank == 0) {
    SETO_ASSIGN(const RootServer* served, root_server(name_of(join), until, [&] { return serve_at(join, *where); }));
    request.server = served->contact;
    return as_pointer(RendezvousBootstrap::join(std::move(request), until));
  }
  SETO_ASSIGN(request.server.addresses, resolve(*where, until));
  return as_pointer(RendezvousBootstrap::join(std::move(request), until, [](Request&, Miss miss) {
    return miss == Miss::nobody || miss == Miss::slow;  // whoever else listens there is no rank 0 that is late
  }));
}

// ---- file:PATH

void take_id(Request& request, const RootJoin& join, const UniqueId& id) {
  request.server = id.contact;
  request.key = rendezvous_key(id.token);
  if (!join.job.empty()) request.key = request.key.derive("seto job name", join.job);
  if (join.secret) request.key = request.key.derive("seto secret", join.secret->bytes());
  request.job_secret = request.key.derive("seto job");
}

Result<RootServer> serve_by_file(const RootJoin& join, const std::string& path, Deadline until) {
  SETO_TRY(check_unused(path, until));
  SETO_ASSIGN(Doors doors, Doors::open(join.network, Doors::Reach::network));
  const UniqueId id{UniqueId::Serves::job, random_token(), doors.contact()};
  Request request;
  take_id(request, join, id);
  RootServer made;
  made.id = encode(id);
  SETO_ASSIGN(made.server, RendezvousServer::start(std::move(doors),
                                                   {request.key, UniqueId::Serves::job, Deadline::never(), presence_key(id)}));
  SETO_TRY(write_root_file(path, made.id));
  made.at_exit = [path, bytes = made.id] { remove_root_file(path, bytes); };
  return made;
}

Result<std::unique_ptr<Bootstrap>> join_by_file(const RootJoin& join, Deadline until) {
  const std::string path = join.root.substr(kFile.size());
  if (path.empty()) return failure(Code::invalid_argument, "SETO_ROOT=file: names no file: write file:PATH");
  Request request = request_of(join);
  request.nobody = "rank 0 does not answer by SETO_ROOT=" + join.root + "; see whether it was started, and sees the same file";
  if (join.rank == 0) {
    SETO_ASSIGN(const RootServer* served, root_server(name_of(join), until, [&] { return serve_by_file(join, path, until); }));
    SETO_ASSIGN(const UniqueId id, decode(served->id));
    take_id(request, join, id);
    return as_pointer(RendezvousBootstrap::join(std::move(request), until));
  }
  SETO_ASSIGN(UniqueId id, wait_for_root_file(path, join.rank, until));
  take_id(request, join, id);
  // A file of a job that has ended lies there until rank 0 of this one writes its own. Who listens where it leads may be anybody.
  return as_pointer(RendezvousBootstrap::join(std::move(request), until, [&](Request& next, Miss) {
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
  return as_pointer(RendezvousBootstrap::join(request_of(join, RendezvousBootstrap::request_by(*id)), until));
}

// A rank that was started with the wrong one sees it here.
Status with_root(const Status& failed, const std::string& root) {
  if (failed.text().find(root) != std::string_view::npos) return failed;
  return {failed.code(), std::string(failed.text()) + " (the ranks meet at " + root + ")"};
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_root(const RootJoin& join, Deadline until) {
  if (join.ranks == 1 && join.rank == 0) return std::unique_ptr<Bootstrap>(std::make_unique<SoloBootstrap>());
  if (join.root.starts_with(kId)) return join_by_id(join, until);
  auto joined = join.root.starts_with(kFile) ? join_by_file(join, until) : join_at(join, until);
  if (!joined.ok()) return with_root(joined.status(), join.root);
  return joined;
}

}  // namespace seto
