#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace seto::command {

struct HostSlots {
  std::string host;
  int slots = 0;  // 0: not stated
};

// "a:2,b:2", "a,b", "[fd00::1]:4". A host may be listed more than once.
Result<std::vector<HostSlots>> parse_hosts(std::string_view list);
// One line for each host: "a", "a:2" or "a slots=2"; text after # is a comment.
Result<std::vector<HostSlots>> parse_host_file(std::string_view text);

struct Placement {
  std::string host;
  std::vector<int> ranks;
};

// Assigns ranks in blocks, in the order of the hosts, each host once. If no host states its slots, the ranks are spread evenly.
// `ranks` 0: as many as there are slots.
Result<std::vector<Placement>> place_ranks(const std::vector<HostSlots>& hosts, int ranks);

}  // namespace seto::command
