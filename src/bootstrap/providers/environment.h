#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

// The launcher of this process: the first in this order whose variables are complete.
enum class Launcher : std::uint8_t { root, torchrun, open_mpi, pmi, slurm, none };
std::string_view name_of(Launcher launcher);

// How the ranks of the job find each other.
enum class RendezvousKind : std::uint8_t {
  alone,  // one rank, which needs no rendezvous
  root,   // `where` is a root: host:port, file:PATH or id:HEX
  local,  // all ranks are on this machine: `where` is the identity of the job, the same for all of them and for no other job
  pmi,    // the launcher carries a text of rank 0 over the descriptor `pmi_fd`
};

struct Launch {
  Launcher launcher = Launcher::none;
  Rank rank = 0;
  int ranks = 1;
  Rank local_rank = -1;  // on its node; -1: unknown
  int local_ranks = 0;   // 0: unknown
  RendezvousKind way = RendezvousKind::alone;
  std::string where;
  std::string job;  // the launcher's name of the job, so that two jobs do not join at one root; empty: unknown
  int pmi_fd = -1;
};

// A pure function of the settings SETO_ROOT, SETO_RANK, SETO_RANKS and of a null-terminated environment ("NAME=value" each; an
// empty value means unset). With no variable set, the job has one rank. Contradictions are failures that name the variables: a
// rank beyond the number of ranks, an incomplete set of variables, ranks of several nodes without a root. README.md lists the
// variables.
Result<Launch> launch_of(const Config& config, const char* const* environment);

// "rack[1-2]n[07,09],other" -> "rack1n07". Empty if the text is not a list of hosts.
std::string first_host(std::string_view list);

// The port at which the ranks of a Slurm step on several nodes join: 20000 to 31999, below the ports that systems assign by
// default.
std::uint16_t port_of_step(std::uint64_t job, std::uint64_t step);

}  // namespace seto
