#include "src/bootstrap/providers/single_rank.h"

namespace seto {

Result<std::vector<std::string>> SingleRankBootstrap::all_gather(std::string mine, Deadline /*until*/) {
  if (mine.size() > kGatherMessageLimit) {
    return failure(Code::invalid_argument, "a bootstrap message of %zu bytes is over the limit of %zu", mine.size(),
                   kGatherMessageLimit);
  }
  std::vector<std::string> all;
  all.push_back(std::move(mine));
  return all;
}

}  // namespace seto
