#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/core/connect/opened_connections.h"
#include "src/core/connect/rank_announcement.h"
#include "src/net/secret.h"
#include "transports/transport.h"

namespace seto {

// A transport that an attempt uses.
struct AttemptTransport {
  const Transport* transport = nullptr;
  Endpoint* endpoint = nullptr;
  std::unique_ptr<PeerGroupSeat> seat;
};

// The announcement of one rank, those that it received from all ranks, and values derived from them.
struct AnnouncedRanks {
  std::size_t rank = 0;
  RankAnnouncement own;
  KnownConnections known;  // those that `own` offers
  std::vector<RankAnnouncement> all;
  AttemptId attempt = 0;
  double ranks_per_core = 1;
  bool on_first_use = false;           // data connections open when they are first used
  Relays relays = Relays::no;          // control messages are passed on; settled before ranks connect
  std::vector<std::uint32_t> site_of;  // by rank; only where they are
  std::vector<std::string> site_names;
  std::vector<bool> same_site;    // by rank: that rank and this one are of one stated site
  std::vector<bool> proved;       // by rank: but this one is opened at init
  std::vector<SocketNeed> needs;  // by rank: of the link to it, without its round trip
  std::uint64_t opening_ms = 0;
  // In the order of make_transports(); only the first, if that one reaches all ranks.
  std::vector<AttemptTransport> transports;
  std::vector<EndpointAnnouncement> endpoints;  // by rank; none if there is one transport
  Secret key;                                   // only with endpoints

  // The transport that connects this rank to that one: the first that reaches it.
  [[nodiscard]] std::size_t transport_to(std::size_t peer) const {
    std::size_t index = 0;
    while (index + 1 < transports.size() && !reaches(index, peer)) ++index;
    return index;
  }
  // A rank that the first transport does not reach has no connection with this one yet.
  [[nodiscard]] bool wants_connection() const {
    for (std::size_t peer = 0; peer < all.size(); ++peer)
      if (peer != rank && transport_to(peer) > 0 &&
          known.shared_with({all[peer].place.process, all[peer].place.context, 0}, all[peer].offered) == nullptr)
        return true;
    return false;
  }
  // The members of the transport's peer group: those that it reaches, with this one.
  [[nodiscard]] std::vector<std::uint32_t> members_of(std::size_t transport) const {
    std::vector<std::uint32_t> members;
    for (std::uint32_t peer = 0; peer < all.size(); ++peer)
      if (peer == rank || reaches(transport, peer)) members.push_back(peer);
    return members;
  }

 private:
  [[nodiscard]] bool reaches(std::size_t transport, std::size_t peer) const {
    return transports[transport].transport->reaches(own.place, all[peer].place);
  }
};

}  // namespace seto
