#include "src/core/communicator/split_agreement.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "src/core/communicator/parent_bootstrap.h"

namespace seto {
namespace {

struct Vote {
  std::int32_t color;
  std::int32_t key;
  std::int32_t wrong;
};

}  // namespace

Result<std::vector<Rank>> agree_on_parts(Communicator& communicator, const SplitChoice& mine, const Status& verdict) {
  const Vote vote{mine.color, mine.key, verdict.ok() ? 0 : 1};
  const Deadline until = Deadline::after_ms(communicator.config().init_timeout_ms);
  SETO_ASSIGN(const std::string flat, gather_bytes(communicator, {reinterpret_cast<const char*>(&vote), sizeof vote}, until));
  std::vector<Vote> votes(static_cast<std::size_t>(communicator.ranks()));
  std::memcpy(votes.data(), flat.data(), flat.size());
  if (!verdict.ok()) return verdict;
  std::vector<Rank> members;
  for (Rank rank = 0; rank < communicator.ranks(); ++rank) {
    const Vote& theirs = votes[static_cast<std::size_t>(rank)];
    if (theirs.wrong != 0) return failure(Code::remote_error, "split: rank %d rejected its call", rank);
    if (theirs.color == mine.color && mine.color != kNoColor) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](Rank left, Rank right) {
    return votes[static_cast<std::size_t>(left)].key < votes[static_cast<std::size_t>(right)].key;
  });
  return members;
}

}  // namespace seto
