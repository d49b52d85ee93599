#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "transports/connection.h"

namespace seto {

// How many attempts a rank offers in its announcement, 8 bytes each. Ranks that connected in one communicator and then split it
// need one number, since an attempt covers all its pairs of ranks.
inline constexpr std::size_t kOffersLimit = 1024;

// Attempts to make a communicator, ascending.
using Attempts = std::vector<AttemptId>;

// The usable connections of a context at one moment. Holds them open, so that what the rank announces stays true until all ranks
// have decided.
class KnownConnections final {
 public:
  KnownConnections() = default;
  KnownConnections(Connections connections, Attempts offered)
      : connections_(std::move(connections)), offered_(std::move(offered)) {}

  // The attempts that opened them.
  [[nodiscard]] const Attempts& offered() const { return offered_; }
  // The connection that both ends hold. `theirs` is what the peer offers; `peer.attempt` is ignored. Null: there is none, and the
  // peer gets the same answer.
  [[nodiscard]] std::shared_ptr<Connection> shared_with(const PeerContext& peer, const Attempts& theirs) const;

 private:
  Connections connections_;  // by context, process, attempt
  Attempts offered_;
};

// The connections of a context to contexts of other processes. There may be several to one context, if communicators were made at
// the same time. Both ends must choose the same connection: a rank offers an attempt once it has connected to all ranks of that
// attempt, and keeps the connections of an offered attempt open while its context lives. So if both ends offer an attempt, both
// have its connection or neither has, and of several both take the smallest number. The medium of a connection follows from the
// host names that both ends stated when it was opened, so a rank that states another host name offers nothing older. Not thread
// safe.
class ConnectionCache final {
 public:
  explicit ConnectionCache(std::size_t limit = kOffersLimit) : limit_(limit) {}

  // The usable connections of a rank that states this host name. Removes connections whose peer has died or that were opened
  // under another host name, and adds them to `dropped` for the caller to close.
  [[nodiscard]] KnownConnections known(const std::string& host, Connections& dropped);
  // A communicator uses these connections. Null ones and connections within the process are skipped.
  void keep(const Connections& used, const std::string& host);

 private:
  std::size_t limit_;  // of offered attempts: the least recently used are left out
  std::string host_;
  Connections connections_;        // by context, process, attempt
  std::vector<AttemptId> recent_;  // most recently used last
};

}  // namespace seto
