#include "src/bootstrap/named_root.h"

#include <sched.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/bootstrap/rendezvous/servers.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

// FNV-1a: names of a fixed length, the same on every rank. Nothing here needs more than that different jobs fall apart.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return value;
}

std::string socket_name(std::string_view job) {
  char name[48];
  std::snprintf(name, sizeof name, "seto-job-%u-%016" PRIx64, geteuid(), hash(job));
  return name;
}

// Proves only that this library speaks.
Secret key_of(std::string_view job) { return Secret::of_text(job).derive("seto named job"); }

Result<RootServer> serve(const std::string& name, const Secret& key) {
  SETO_ASSIGN(Doors doors, Doors::open_named(name));
  RootServer made;
  made.contact = doors.contact();
  SETO_ASSIGN(made.server, RendezvousServer::start(std::move(doors), {key, UniqueId::Serves::job}));
  return made;
}

// Until somebody listens, another rank or this process.
Status have_a_server(const std::string& name, const Secret& key, Deadline until) {
  while (true) {
    const Result<PrivateFd> taken = connect_local(name, SocketKind::stream, until);
    if (taken.ok()) return {};
    if (taken.status().code() != Code::remote_error) return taken.status();
    const Result<const RootServer*> server = root_server(name, until, [&] { return serve(name, key); });
    if (server.ok()) return {};
    if (server.status().code() != Code::invalid_usage || until.passed()) return server.status();
    sched_yield();  // another rank is between taking the name and listening
  }
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_named(std::string_view job, Rank rank, int size, std::uint64_t number, Deadline until) {
  RendezvousBootstrap::Request request;
  request.server.socket_name = socket_name(job);
  request.key = key_of(job);
  request.number = number;
  request.rank = rank;
  request.size = size;
  request.nobody = "the process that served the ranks of this job on this machine has ended";
  SETO_TRY(have_a_server(request.server.socket_name, request.key, until));
  SETO_ASSIGN(RendezvousBootstrap joined, RendezvousBootstrap::join(std::move(request), until));
  return std::unique_ptr<Bootstrap>(std::make_unique<RendezvousBootstrap>(std::move(joined)));
}

}  // namespace seto
