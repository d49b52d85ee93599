#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/types.h"
#include "src/net/secret.h"
#include "src/topology/site_links.h"
#include "src/topology/tiers.h"
#include "transports/transport.h"

namespace seto {

// The result of connect_ranks(): what a communicator knows of its ranks, and how it reaches them.
struct ConnectedRanks {
  Rank rank = 0;
  int ranks = 1;
  AttemptId attempt = 0;
  Tiers tiers;
  Tiers stated_tiers;  // without sites that were found by measuring
  Sites sites;
  std::vector<std::string> site_names;            // by site: as its first rank states it, else the number
  std::string found_site;                         // of this rank, for later communicators of its context; empty: not found now
  double ranks_per_core = 1;                      // on the host or machine where it is highest
  std::vector<std::string> places;                // by rank: host and process, as in "tokyo-3:4711"
  bool over_network = false;                      // the ranks are on several nodes
  Secret key;                                     // shared by the ranks; only over a network
  std::vector<std::shared_ptr<void>> admissions;  // under that key
  Connections connections;                        // by rank; null: this rank
  std::shared_ptr<PeerGroup> peer_group;          // its members are ranks
};

}  // namespace seto
