#include <netdb.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "src/base/thread.h"
#include "src/net/address.h"

namespace seto {
namespace {

// Shared with the look-up thread, which may outlive resolve().
struct Lookup {
  HostPort where;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int error = 0;
  std::vector<SocketAddress> addresses;
};

void look_up(Lookup& lookup) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(lookup.where.host.c_str(), nullptr, &hints, &first);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = first; error == 0 && one != nullptr; one = one->ai_next) {
    const auto address = from_native(one->ai_addr);
    if (address) addresses.push_back(address->with_port(lookup.where.port));
  }
  if (first != nullptr) freeaddrinfo(first);
  const std::lock_guard lock(lookup.mutex);
  lookup.error = error;
  lookup.addresses = std::move(addresses);
  lookup.done = true;
  lookup.changed.notify_all();
}

bool wait(Lookup& lookup, Deadline until) {
  std::unique_lock lock(lookup.mutex);
  while (!lookup.done && !until.passed()) lookup.changed.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
  return lookup.done;
}

Status unknown_host(const HostPort& where, int error) {
  return failure(Code::unavailable,
                 "the host name '%.255s' has no address (%s); see /etc/hosts and the name servers of this machine, or give a "
                 "numeric address",
                 where.host.c_str(), error == 0 ? "of IPv4 or IPv6" : gai_strerror(error));
}

}  // namespace

Result<std::vector<SocketAddress>> resolve(const HostPort& where, Deadline until) {
  if (const auto number = parse_host(where.host)) return std::vector{number->with_port(where.port)};
  const auto lookup = std::make_shared<Lookup>();
  lookup->where = where;
  SETO_ASSIGN(std::thread thread, start_thread("seto-resolve", [lookup] { look_up(*lookup); }));
  if (!wait(*lookup, until)) {
    thread.detach();  // a look-up cannot be cancelled
    return failure(Code::timeout,
                   "the look-up of the host name '%.255s' did not end before the deadline; see the name servers of this machine, "
                   "or give a numeric address",
                   where.host.c_str());
  }
  thread.join();  // the thread is about to end and must free the resolver's memory
  if (lookup->addresses.empty()) return unknown_host(where, lookup->error);
  return lookup->addresses;
}

}  // namespace seto
