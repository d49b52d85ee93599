#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/core/connect/rank_announcement.h"
#include "src/core/connect/rank_sites.h"

namespace seto {

// With SETO_CONNECT=auto, connections open on first use where a rank would open more data sockets than this at init.
inline constexpr std::uint64_t kSocketsAtInit = 128;

// Whether the ranks of an attempt open their data connections when they are first used. Fails if they set SETO_CONNECT
// differently. All ranks get the same result from the same announcements.
[[nodiscard]] Result<bool> opens_on_first_use(const std::vector<RankAnnouncement>& all, const RankSites& sites);

// if_one_site: sites are to be found, and there must be one.
enum class Relays : std::uint8_t { no, if_one_site, yes };
// With SETO_CONTROL_RELAY=auto, control messages are passed on from this number of processes on: with fewer ones a channel to
// each other process is at most 48 sockets, which every system allows, and every two notice at once that the path between them
// broke.
inline constexpr std::size_t kProcessesThatRelay = 49;
struct RelayChoice {
  Relays relays = Relays::no;
  const char* why = "";  // not
  std::size_t processes = 0;
  bool tell = false;  // worth a line in the log
};
// Whether the processes of an attempt pass control messages on, rather than each having a channel to each other one. Fails if
// SETO_CONTROL_RELAY is `on` on some ranks only; `off` wins over `auto`. All ranks get the same result from the same
// announcements.
[[nodiscard]] Result<RelayChoice> relays_control(const std::vector<RankAnnouncement>& all, const RankSites& sites,
                                                 bool on_first_use);

// For each rank, whether it opens a connection to `rank` at init in any case: one pair for each two sites that are known.
[[nodiscard]] std::vector<bool> proved_by(std::size_t rank, const RankSites& sites);

}  // namespace seto
