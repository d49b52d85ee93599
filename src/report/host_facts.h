#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/config.h"

namespace seto {

// Facts about a host that affect collectives. A plain value: facts_of_host() collects it, examine() judges it.
struct HostFacts {
  struct Network {
    std::string name;
    std::string kind;       // the names of src/net
    std::string addresses;  // "10.0.0.1, fe80::1"
    bool up = true;
    std::uint64_t speed_mbit = 0;  // 0: unknown
    std::uint64_t mtu = 0;
  };

  std::string kernel;     // "Linux 6.1.0"
  std::string processor;  // "x86_64"
  int online_cores = 1;
  int usable_cores = 1;    // usable by this process
  double quota_cores = 0;  // CPU quota of the control groups; 0: none
  double load = -1;        // load average over the last minute (threads that ran or were ready); negative: unknown
  bool hyperthreads = false;
  std::string governor;  // empty: the machine has no governor
  std::string clock_source;
  bool steady_ticks = false;  // the time stamp counter has a constant rate and never stops
  bool synchronised = false;  // the wall clock is synchronised
  std::uint64_t memory = 0;
  std::uint64_t free_memory = 0;
  std::uint64_t memory_limit = 0;  // of the control groups; 0: none
  std::uint64_t locked_limit = 0;
  std::uint64_t files_limit = 0;
  std::uint64_t files_hard_limit = 0;
  bool has_shm = false;
  std::uint64_t shm_size = 0;
  std::uint64_t shm_free = 0;
  bool has_memfd = false;
  bool has_membarrier = false;
  std::string huge_pages;         // the setting in force: "always", "madvise", "never"; empty: unknown
  std::string shared_huge_pages;  // the same for shared memory
  std::uint64_t reserved_huge_pages = 0;
  std::vector<Network> networks;
  std::string chosen;                // addresses that this process announces to others, best first
  std::string network_trouble;       // why there are no such addresses
  std::uint64_t receive_buffer = 0;  // the largest buffer to which TCP grows by itself
  std::uint64_t send_buffer = 0;
  std::uint64_t backlog = 0;      // connections that may wait at a listener
  std::string congestion;         // in use
  std::string congestion_choice;  // all that the kernel offers
};

// Reads the state of the host and changes nothing. `config` says which interfaces may be used.
HostFacts facts_of_host(const Config& config);

// Collects the facts that are files under `root`; a test passes a directory of its own.
void put_files(HostFacts& facts, const std::string& root);

// "always [madvise] never" -> "madvise".
std::string chosen_word(const std::string& line);

}  // namespace seto
