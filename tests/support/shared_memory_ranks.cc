#include "tests/support/shared_memory_ranks.h"

#include <sched.h>

#include <algorithm>

namespace seto::testing {
namespace {

constexpr std::uint64_t kPatienceMs = 30'000;

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  for (const Deadline until = Deadline::after_ms(kPatienceMs); !condition(); sched_yield())
    if (until.passed()) return false;
  return true;
}

Status SharedMemoryBootstrap::step(Deadline until) {
  const std::uint64_t own = ++room_.places[static_cast<std::size_t>(seat_.rank)].steps;
  for (Rank rank = 0; rank < seat_.size; ++rank)
    for (; room_.places[static_cast<std::size_t>(rank)].steps < own; sched_yield())
      if (until.passed()) return failure(Code::timeout, "rank %d did not arrive", rank);
  return {};
}

Result<std::vector<std::string>> SharedMemoryBootstrap::all_gather(std::string mine, Deadline until) {
  ++gathers_;
  if (holds_.before) holds_.before(gathers_);
  SharedMemoryRanks::Place& own = room_.places[static_cast<std::size_t>(seat_.rank)];
  if (mine.size() > SharedMemoryRanks::kMostBytes)
    return failure(Code::invalid_argument, "the message is too large for the shared memory");
  own.size = mine.size();
  std::copy(mine.begin(), mine.end(), own.bytes.begin());
  SETO_TRY(step(until));
  std::vector<std::string> all;
  for (Rank rank = 0; rank < seat_.size; ++rank) {
    const SharedMemoryRanks::Place& place = room_.places[static_cast<std::size_t>(rank)];
    all.emplace_back(place.bytes.data(), place.size);
  }
  SETO_TRY(step(until));
  if (holds_.after) holds_.after(gathers_);
  return all;
}

}  // namespace seto::testing
