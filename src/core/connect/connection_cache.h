#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/core/connection.h"

namespace seto {

// Of how many makings a rank offers the connections when it introduces itself: 8 bytes for each. One making covers all its pairs,
// so ranks that met in a whole and then split say one number.
inline constexpr std::size_t kOffersLimit = 1024;

// Makings of communicators, ascending.
using Attempts = std::vector<AttemptId>;
using Connections = std::vector<std::shared_ptr<Connection>>;

// What a context knew of others at one moment, held so that what its rank says of it stays true while the others decide.
class KnownConnections final {
 public:
  KnownConnections() = default;
  KnownConnections(Connections connections, Attempts offered)
      : connections_(std::move(connections)), offered_(std::move(offered)) {}

  // The makings in which they were opened.
  [[nodiscard]] const Attempts& offered() const { return offered_; }
  // The connection that both ends know; `theirs` is what the peer offers, `peer.attempt` does not matter. Null: there is none,
  // and the peer finds the same.
  [[nodiscard]] std::shared_ptr<Connection> shared_with(const PeerAddress& peer, const Attempts& theirs) const;

 private:
  Connections connections_;  // by context, process, attempt
  Attempts offered_;
};

// The connections of a context to those of other processes; there may be several to one, when communicators were made at the same
// time. What both ends must see alike: a rank offers a making once it has met everybody in it, and never closes the connections
// of one that it offered while its context lives. So if both ends offer a making, both have its connection, or neither has, and
// of several both take the one of the smallest number. Which medium a connection uses follows from the hosts that the two named
// when it was made, so a rank that names another host offers nothing older. Not thread safe.
class Acquaintances final {
 public:
  explicit Acquaintances(std::size_t limit = kOffersLimit) : limit_(limit) {}

  // Of who names that host from now on. Forgets those whose peer has died, or whom another host led to: they are added to `gone`,
  // for the caller to drop.
  [[nodiscard]] KnownConnections known(const std::string& host, Connections& gone);
  // A communicator is made of these. Null, and what does not leave the process: passed over.
  void keep(const Connections& met, const std::string& host);
  // Of all connections, each once.
  [[nodiscard]] std::vector<std::shared_ptr<Neighbour>> neighbours() const;

 private:
  std::size_t limit_;  // of what is offered; what was of no use for longest is left out
  std::string host_;
  Connections connections_;        // by context, process, attempt
  std::vector<AttemptId> recent_;  // the one that was of use last is the last
};

}  // namespace seto
