#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace seto {

// What a host is, as far as collectives feel it. A value: found by facts_of_host, judged by examine.
struct HostFacts {
  struct Network {
    std::string name;
    std::string kind;       // as src/net says it
    std::string addresses;  // "10.0.0.1, fe80::1"
    bool up = true;
    std::uint64_t speed_mbit = 0;  // 0: not known
    std::uint64_t mtu = 0;
  };

  std::string kernel;     // "Linux 6.1.0"
  std::string processor;  // "x86_64"
  int online_cores = 1;
  int usable_cores = 1;    // of this process
  double quota_cores = 0;  // of its control groups; 0: none
  double load = -1;        // threads of the machine that ran or wanted to, over the last minute; negative: not known
  bool hyperthreads = false;
  std::string governor;  // empty: the machine has none to choose
  std::string clock_source;
  bool steady_ticks = false;  // the time stamp counter runs evenly and never stops
  bool synchronised = false;  // the wall clock
  std::uint64_t memory = 0;
  std::uint64_t free_memory = 0;
  std::uint64_t memory_limit = 0;  // of its control groups; 0: none
  std::uint64_t locked_limit = 0;
  std::uint64_t files_limit = 0;
  std::uint64_t files_hard_limit = 0;
  bool has_shm = false;
  std::uint64_t shm_size = 0;
  std::uint64_t shm_free = 0;
  bool has_memfd = false;
  bool has_membarrier = false;
  std::string huge_pages;         // what of them is in force: "always", "madvise", "never"; empty: not known
  std::string shared_huge_pages;  // of shared memory
  std::uint64_t reserved_huge_pages = 0;
  std::vector<Network> networks;
  std::string chosen;                // addresses at which others are told to reach this process, best first
  std::string network_trouble;       // why there are none
  std::uint64_t receive_buffer = 0;  // the most that TCP takes by itself
  std::uint64_t send_buffer = 0;
  std::uint64_t backlog = 0;      // callers that may wait at a listener
  std::string congestion;         // in use
  std::string congestion_choice;  // all there are
};

// Looks and asks, changes nothing. `config`: which interfaces are allowed.
HostFacts facts_of_host(const Config& config);

// The part of it that lies in files, below a root that a test may make up.
void put_files(HostFacts& facts, const std::string& root);

// "always [madvise] never" -> "madvise".
std::string chosen_word(const std::string& line);

}  // namespace seto
