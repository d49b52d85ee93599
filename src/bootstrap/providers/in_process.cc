#include "src/bootstrap/providers/in_process.h"

#include <chrono>
#include <utility>

#include "src/base/check.h"

namespace seto {
namespace {

Status has_left(Rank rank) { return failure(Code::remote_error, "rank %d has left: its init failed or was given up", rank); }

}  // namespace

InProcessHub::InProcessHub(int size) : size_(size), left_(static_cast<std::size_t>(size), false) {
  SETO_CHECK(size >= 1 && size <= kBootstrapRankLimit);
  current_ = new_round();
}

std::shared_ptr<InProcessHub::Round> InProcessHub::new_round() const {
  auto round = std::make_shared<Round>();
  round->messages.resize(static_cast<std::size_t>(size_));
  round->arrived.resize(static_cast<std::size_t>(size_), false);
  return round;
}

std::vector<Rank> InProcessHub::absent(const Round& round) const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size_; ++rank) {
    if (!round.arrived[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

Status InProcessHub::break_with(Status reason) {
  if (broken_.ok()) broken_ = std::move(reason);
  changed_.notify_all();
  return broken_;
}

Status InProcessHub::contribute(Round& round, Rank rank, std::string mine) {
  const auto index = static_cast<std::size_t>(rank);
  if (rank < 0 || rank >= size_) {
    return failure(Code::invalid_argument, "rank %d is out of range: the communicator has %d ranks", rank, size_);
  }
  if (round.arrived[index])
    return failure(Code::invalid_argument, "rank %d joined twice: each rank is given to one thread", rank);
  if (mine.size() > kGatherMessageLimit) {
    return failure(Code::invalid_argument, "rank %d: a bootstrap message of %zu bytes is over the limit of %zu", rank,
                   mine.size(), kGatherMessageLimit);
  }
  for (Rank other = 0; other < size_; ++other) {
    if (!left_[static_cast<std::size_t>(other)] || round.arrived[static_cast<std::size_t>(other)]) continue;
    return has_left(other);
  }
  round.messages[index] = std::move(mine);
  round.arrived[index] = true;
  ++round.count;
  return {};
}

Result<std::vector<std::string>> InProcessHub::all_gather(Rank rank, std::string mine, Deadline until) {
  const std::uint64_t since_ns = monotonic_ns();
  std::unique_lock lock(mutex_);
  if (!broken_.ok()) return broken_;
  if (until.stopped()) return break_with(has_left(rank));
  const std::shared_ptr<Round> round = current_;
  if (Status wrong = contribute(*round, rank, std::move(mine)); !wrong.ok()) return break_with(std::move(wrong));
  if (round->count == size_) {
    current_ = new_round();
    changed_.notify_all();
    return round->messages;
  }
  while (round->count < size_ && broken_.ok()) {
    if (until.stopped()) return break_with(has_left(rank));
    if (until.passed()) return break_with(missing_ranks(absent(*round), size_, (monotonic_ns() - since_ns) / 1'000'000));
    changed_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
  }
  if (round->count < size_) return broken_;
  return round->messages;
}

void InProcessHub::leave(Rank rank) {
  const std::lock_guard lock(mutex_);
  if (rank < 0 || rank >= size_) return;
  left_[static_cast<std::size_t>(rank)] = true;
  if (current_->count > 0 && !current_->arrived[static_cast<std::size_t>(rank)]) {
    static_cast<void>(break_with(has_left(rank)));
  }
}

InProcessBootstrap::InProcessBootstrap(std::shared_ptr<InProcessHub> hub, Rank rank) : hub_(std::move(hub)), rank_(rank) {}

InProcessBootstrap::~InProcessBootstrap() { hub_->leave(rank_); }

Result<std::vector<std::string>> InProcessBootstrap::all_gather(std::string mine, Deadline until) {
  return hub_->all_gather(rank_, std::move(mine), until);
}

}  // namespace seto
