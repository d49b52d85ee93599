#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

// Who started this process, as far as its environment tells. The first of this order whose variables are whole.
enum class Launcher : std::uint8_t { root, torchrun, open_mpi, pmi, slurm, none };
std::string_view name_of(Launcher launcher);

// How the ranks of the job find each other.
enum class MeetingWay : std::uint8_t {
  alone,    // one rank: nobody to find
  root,     // `where` is a root: host:port, file:PATH or id:HEX
  locally,  // all ranks are on this machine: `where` is the identity of the job, the same for all of them and for no other job
  pmi,      // the launcher carries what rank 0 says, over the descriptor `pmi_fd`
};

struct Launch {
  Launcher launcher = Launcher::none;
  Rank rank = 0;
  int ranks = 1;
  Rank local_rank = -1;  // on its node; -1: the launcher does not say
  int local_ranks = 0;   // 0: the launcher does not say
  MeetingWay way = MeetingWay::alone;
  std::string where;
  std::string job;  // what the launcher calls the job, so that two of them do not meet at one root; empty: it does not say
  int pmi_fd = -1;
};

// A pure function of the settings SETO_ROOT, SETO_RANK, SETO_RANKS and of a null-terminated environment ("NAME=value" each; an
// empty value means unset). With nothing set: one rank. What contradicts itself is a failure that names the variables:
// a rank beyond the number of ranks, half a set, ranks of several nodes without a place to meet.
// README.md lists the variables.
Result<Launch> launch_of(const Config& config, const char* const* environment);

// "rack[1-2]n[07,09],other" -> "rack1n07". Empty if the text is no list of hosts.
std::string first_host(std::string_view list);

// Where the ranks of a Slurm step on several nodes meet: 20000 to 31999, below the ports that systems give to whoever asks.
std::uint16_t port_of_step(std::uint64_t job, std::uint64_t step);

}  // namespace seto
