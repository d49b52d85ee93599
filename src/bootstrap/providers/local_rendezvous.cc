#include "src/bootstrap/providers/local_rendezvous.h"

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

// FNV-1a. The names have a fixed length and are equal on every rank. Different jobs need different names; a collision costs only
// an error.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char header : text) value = (value ^ static_cast<unsigned char>(header)) * 0x100000001b3U;
  return value;
}

// The key proves only that the other end is this library; the kernel proves its user.
Secret key_of(std::string_view job) { return Secret::of_text(job).derive("seto named job"); }

Result<RootServer> serve(const std::string& name, const Secret& key) {
  SETO_ASSIGN(Listeners listeners, Listeners::open_named(name));
  RootServer made;
  made.address = listeners.address();
  SETO_ASSIGN(made.server, RendezvousServer::start(std::move(listeners), {key, UniqueId::Serves::job}));
  return made;
}

// Returns once a process listens at the name: another rank, or this one.
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

std::string local_rendezvous_name(std::string_view job) {
  char name[48];
  std::snprintf(name, sizeof name, "seto-job-%u-%016" PRIx64, geteuid(), hash(job));
  return name;
}

Result<std::unique_ptr<Bootstrap>> join_local_rendezvous(std::string_view job, Rank rank, int size, std::uint64_t number,
                                                         Deadline until) {
  RendezvousBootstrap::Request request;
  request.server.socket_name = local_rendezvous_name(job);
  request.key = key_of(job);
  request.number = number;
  request.rank = rank;
  request.size = size;
  request.unreachable_text = "the process that served the ranks of this job on this machine has ended";
  SETO_TRY(have_a_server(request.server.socket_name, request.key, until));
  SETO_ASSIGN(RendezvousBootstrap joined, RendezvousBootstrap::join(std::move(request), until));
  return std::unique_ptr<Bootstrap>(std::make_unique<RendezvousBootstrap>(std::move(joined)));
}

}  // namespace seto
