#include "src/bootstrap/named_bootstrap.h"

#include <sched.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <utility>

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

}  // namespace

Result<std::unique_ptr<NamedBootstrap>> NamedBootstrap::join(std::string_view job, Rank rank, int size, Deadline until) {
  std::unique_ptr<NamedBootstrap> self(new NamedBootstrap);
  const UniqueId id{socket_name(job), Token{}};
  while (true) {
    const Result<PrivateFd> taken = connect_local(id.socket_name, SocketKind::stream, until);
    if (taken.ok()) break;
    if (taken.status().code() != Code::remote_error) return taken.status();
    Result<std::unique_ptr<RendezvousServer>> server = RendezvousServer::start(id, until);
    if (server.ok()) {
      self->server_ = std::move(server).value();
      break;
    }
    if (server.status().code() != Code::invalid_usage || until.passed()) return server.status();
    sched_yield();  // another rank is between taking the name and listening
  }
  SETO_ASSIGN(self->joined_, LocalBootstrap::join(encode(id), rank, size, until));
  return self;
}

}  // namespace seto
