#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/connect/connection_cache.h"
#include "src/topology/graph/core_set.h"
#include "transports/endpoint.h"

namespace seto {

// In RankAnnouncement::tls: SETO_TLS_CERTIFICATE is set.
inline constexpr std::uint64_t kTlsWithCertificates = 0x100;

// The announcement of a rank to all others in the first round of an attempt.
struct RankAnnouncement {
  Place place;
  std::string site;  // as stated
  // Mbit/s that the links of its site carry, as stated; 0: unknown.
  std::uint64_t uplink_mbit = 0;
  std::uint64_t downlink_mbit = 0;
  std::uint64_t pacing_mbit = 0;  // SETO_SITE_PACING_MBIT; 0: no limit
  std::string found_site;         // RankSites::label_of() of the attempt that found its site; empty: none did
  std::string seat;               // PeerGroupSeat::announcement() of the first transport, for a group of all ranks
  std::uint64_t nonce = 0;        // random
  int cores = 1;                  // usable by its process
  std::string bound;              // which ones, CoreSet::text(), if it may not use all; empty: all, or unknown
  std::uint64_t machine = 0;      // machine_number()
  int machine_cores = 1;          // online
  std::string words;              // host and process for a person: "tokyo-3:4711"
  std::string outcome;            // outcome_text() of its preparation
  std::uint64_t connect = 0;      // SETO_CONNECT: a value of Connect
  std::uint64_t relay = 0;        // SETO_CONTROL_RELAY: a value of ControlRelay
  std::uint64_t near_us = 0;      // SETO_SITE_ROUND_TRIP; 0: no sites are found
  std::uint64_t tls = 0;          // SETO_TLS: a value of TlsMode, and kTlsWithCertificates
  std::uint64_t topology = 0;     // SETO_TOPOLOGY_FILE: a digest of its content; 0: none
  std::uint64_t file_host = 0;    // number of its host there, from 1; 0: it is not there
  Attempts offered;               // attempts whose connections it holds open

  // Sets cores and bound, after machine_cores.
  void take_cores(const CoreSet& usable);
  [[nodiscard]] std::string encoded() const;
  static Result<RankAnnouncement> decoded(const std::string& text);
};

// The announcement of one transport of a rank.
struct TransportAnnouncement {
  std::string address;  // Endpoint::address()
  std::string seat;     // PeerGroupSeat::announcement(), for a group of the ranks that the transport reaches
};

// The second announcement, needed if the first transport does not reach all ranks: how the rank is reached over each transport
// and, if the bootstrap has no secret, rank 0's proposal of one.
struct EndpointAnnouncement {
  std::vector<TransportAnnouncement> transports;  // in the order of make_transports()
  std::string secret;
  std::string secret_check;  // of the secret that the user gave (src/bootstrap/job_key.h)
  bool wants = false;        // a connection over a network that it does not have yet
  std::string outcome;

  [[nodiscard]] std::string encoded() const;
  // `transports`: how many there are.
  static Result<EndpointAnnouncement> decoded(const std::string& text, std::size_t transports);
};

// The last announcement: whether the rank is connected to all others, and how far away their hosts are.
struct FinalAnnouncement {
  std::string outcome;
  std::vector<std::uint32_t> round_trips_us;  // by host, 0: unknown; none if no round trip is known

  [[nodiscard]] std::string encoded() const;
  static Result<FinalAnnouncement> decoded(const std::string& text);
};

// Decodes the announcements of all ranks. A failure names the rank whose announcement is malformed.
Result<std::vector<RankAnnouncement>> announcements_of(const std::vector<std::string>& texts);

// Fails if ranks set SETO_TLS differently, or only some use certificates; the text names both values. Connections over TCP
// between them are refused, too.
[[nodiscard]] Status same_tls(const std::vector<RankAnnouncement>& all);

// Fails if ranks have topology files of different content; the text names both digests.
[[nodiscard]] Status same_topology(const std::vector<RankAnnouncement>& all);

// The number of this attempt: the same on all ranks, and unique because of the nonces.
AttemptId attempt_of(const std::vector<std::string>& texts);

// Ranks per usable core where that rank runs, at least 1: counted over its host or over its machine, whichever is more. Ranks of
// one machine compete for its cores even if they do not share memory. Launchers bind ranks to cores: those of other ranks do not
// count. A rank that may use several cores counts in equal parts on them.
double ranks_per_core_at(const RankAnnouncement& one, const std::vector<RankAnnouncement>& all);
// The largest of these values. All ranks get the same, since all have the same announcements.
double most_ranks_per_core(const std::vector<RankAnnouncement>& all);

// Some ranks are on different machines, or may be.
bool on_several_machines(const std::vector<RankAnnouncement>& all);

// Encodes how a step of the init ended on one rank: a code, then the error text; empty for success.
std::string outcome_text(const Status& made);
// The outcome of the step for all ranks, with the same text on every rank: of those that failed, the one nearest to the cause. A
// timeout, or the report that another rank failed, is farther from the cause than any other failure.
Status common_outcome(Rank own, const Status& mine, const std::vector<std::string>& outcomes);
// The failure of a rank that could not connect, in the text that all ranks get. A failure that another rank reported (aborted) is
// returned unchanged.
Status connect_failure(Rank rank, const Status& reason);

}  // namespace seto
