#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "src/base/log.h"
#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/bootstrap/rendezvous/rendezvous_server.h"
#include "tests/support/tls_ends.h"
#include "tests/unit/bootstrap/ranks.h"

namespace seto::testing {

constexpr std::uint64_t kLongMs = 30'000;

inline Deadline later() { return Deadline::after_ms(kLongMs); }

inline NetworkChoice loopback_network() { return NetworkChoice::parse({"lo", "", tls_of_test()}).value(); }

// A server that ends with the test, unlike one of create_unique_id, and its id.
struct Place {
  explicit Place(UniqueId::Serves serves = UniqueId::Serves::communicator, Listeners::Reach reach = Listeners::Reach::machine,
                 int shutdown_ms = kShutdownMs)
      : listeners(Listeners::open(loopback_network(), reach).value()), id{serves, random_token(), listeners.address()} {
    server =
        RendezvousServer::start(std::move(listeners), {rendezvous_key(id.token), serves, later(), {}, shutdown_ms, tls_of_test()})
            .value();
    bytes = encode(id);
  }
  // The address as another machine sees it, without the local socket, so all connections use TCP.
  [[nodiscard]] UniqueIdBytes from_afar() const {
    UniqueId far = id;
    far.address.socket_name.clear();
    return encode(far);
  }

  Listeners listeners;
  UniqueId id;
  UniqueIdBytes bytes{};
  std::unique_ptr<RendezvousServer> server;
};

// A server whose ranks connect over TCP.
struct FarPlace : Place {
  explicit FarPlace(UniqueId::Serves serves = UniqueId::Serves::communicator)
      : Place(serves, Listeners::Reach::network), far(from_afar()) {}
  [[nodiscard]] const SocketAddress& address() const { return id.address.addresses.front(); }
  UniqueIdBytes far;
};

inline Answer join_and_gather(const UniqueIdBytes& id, Rank rank, int size, Deadline until) {
  auto bootstrap = RendezvousBootstrap::join(id, rank, size, until, loopback_network());
  if (!bootstrap.ok()) return bootstrap.status();
  return bootstrap->all_gather("rank " + std::to_string(rank), until);
}

// Waits for a text that another thread will log.
inline bool comes_to_say(LogCapture& log, std::string_view text) {
  const Deadline until = later();
  while (!log.contains(text) && !until.passed()) std::this_thread::yield();
  return log.contains(text);
}

inline bool ends_within(const RendezvousServer& server, std::uint64_t ms) {
  const Deadline until = Deadline::after_ms(ms);
  while (!server.finished() && !until.passed()) poll(nullptr, 0, 1);
  return server.finished();
}

}  // namespace seto::testing
