#include "src/bootstrap/rendezvous/session_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/bootstrap/bootstrap.h"

namespace seto {

Status SessionState::admit(const Hello& hello) {
  ++hello_count_;
  if (!broken_.ok()) return broken_;
  if (full()) {
    return failure(Code::invalid_usage,
                   "rank %d joined by a unique id that a communicator of %d ranks already uses: an id serves one communicator, "
                   "make a new one",
                   hello.rank, size_);
  }
  if (Status wrong = check(hello); !wrong.ok()) {
    break_with(wrong);
    return wrong;
  }
  if (size_ == 0) {
    const auto count = static_cast<std::size_t>(hello.size);
    size_ = hello.size;
    first_rank_ = hello.rank;
    waits_since_ns_ = monotonic_ns();
    late_at_ = Deadline::after_ms(late_ms_);
    joined_.resize(count);
    left_.resize(count);
    contributed_.resize(count);
    messages_.resize(count);
  }
  joined_[static_cast<std::size_t>(hello.rank)] = true;
  ++joined_count_;
  sooner(hello.remaining_ms);
  if (full()) announcement_ = Announcement{FrameKind::ready, {}};
  return {};
}

Status SessionState::check(const Hello& hello) const {
  if (hello.size < 1 || hello.size > kBootstrapRankLimit) {
    return failure(Code::invalid_argument, "rank %d says that the communicator has %d ranks: it can have 1 to %d", hello.rank,
                   hello.size, kBootstrapRankLimit);
  }
  if (size_ != 0 && hello.size != size_) {
    return failure(Code::invalid_argument, "rank %d says that the communicator has %d ranks, rank %d says %d", hello.rank,
                   hello.size, first_rank_, size_);
  }
  if (hello.rank < 0 || hello.rank >= hello.size) {
    return failure(Code::invalid_argument, "rank %d is out of range: the communicator has %d ranks, 0 to %d", hello.rank,
                   hello.size, hello.size - 1);
  }
  if (size_ != 0 && joined_[static_cast<std::size_t>(hello.rank)]) {
    return failure(Code::invalid_argument,
                   "rank %d joined twice: give each rank to one process or thread, and each id or root to one job", hello.rank);
  }
  return {};
}

void SessionState::contribute(Rank rank, const Contribution& contribution) {
  if (!broken_.ok()) return;
  const auto index = static_cast<std::size_t>(rank);
  if (!full() || contributed_[index])
    return break_with(failure(Code::remote_error, "rank %d sent a contribution out of turn", rank));
  round_size_ += contribution.message.size();
  if (contribution.message.size() > kGatherMessageLimit || round_size_ > kGatherTotalLimit) {
    return break_with(
        failure(Code::invalid_argument,
                "rank %d: a bootstrap message of %zu bytes, %zu with those before it, is over the limit of %zu, or %zu in all",
                rank, contribution.message.size(), round_size_, kGatherMessageLimit, kGatherTotalLimit));
  }
  if (contributed_count_ == 0) {
    until_ = Deadline::after_ms(contribution.remaining_ms);
    waits_since_ns_ = monotonic_ns();
  }
  sooner(contribution.remaining_ms);
  contributed_[index] = true;
  ++contributed_count_;
  messages_[index] = contribution.message;
  if (contributed_count_ == size_) return finish_round();
  for (Rank other = 0; left_count_ > 0 && other < size_; ++other) {
    if (!left_[static_cast<std::size_t>(other)] || contributed_[static_cast<std::size_t>(other)]) continue;
    return break_with(
        failure(Code::remote_error, "rank %d has left the rendezvous: its process ended or its init failed", other));
  }
}

void SessionState::finish_round() {
  announcement_ = Announcement{FrameKind::result, std::exchange(messages_, std::vector<std::string>(messages_.size()))};
  contributed_.assign(contributed_.size(), false);
  contributed_count_ = 0;
  round_size_ = 0;
}

void SessionState::leave(Rank rank) {
  const auto index = static_cast<std::size_t>(rank);
  left_[index] = true;
  ++left_count_;
  if (!full()) {
    return break_with(
        failure(Code::remote_error, "rank %d left before all ranks had joined: its process ended or its init failed", rank));
  }
  if (contributed_count_ > 0 && !contributed_[index]) {
    break_with(failure(Code::remote_error, "rank %d has left the rendezvous: its process ended or its init failed", rank));
  }
}

void SessionState::look_at_deadline(const std::string& hint) {
  if (!waiting() || !until_.passed()) return;
  if (size_ == 0) return break_with(failure(Code::timeout, "no rank joined before the deadline of the init"));
  const Status missing = missing_ranks(absent(full() ? contributed_ : joined_), size_, waited_ms());
  if (full() || hint.empty()) return break_with(missing);
  break_with(failure(missing.code(), "%s; %s", std::string(missing.text()).c_str(), hint.c_str()));
}

void SessionState::break_with(Status reason) {
  if (!broken_.ok()) return;
  broken_ = std::move(reason);
  announcement_ = Announcement{FrameKind::failure, {}};
  messages_.clear();
}

std::optional<SessionState::Announcement> SessionState::take_announcement() { return std::exchange(announcement_, std::nullopt); }

std::optional<std::string> SessionState::take_late_warning() {
  if (!broken_.ok() || full() || !late_at_.passed()) return {};
  late_at_ = Deadline::never();
  const std::vector<Rank> missing = absent(joined_);
  return "the init has waited " + std::to_string(waited_ms()) + " ms for " + rank_list(missing) + " of " + std::to_string(size_) +
         "; " + advice_on_missing(missing.size());
}

int SessionState::remaining_ms() const {
  if (!waiting()) return std::numeric_limits<int>::max();
  return full() ? until_.remaining_ms() : std::min(until_.remaining_ms(), late_at_.remaining_ms());
}

void SessionState::sooner(std::uint64_t remaining_ms) {
  const Deadline other = Deadline::after_ms(remaining_ms);
  if (other.remaining_ms() < until_.remaining_ms()) until_ = other;
}

std::vector<Rank> SessionState::absent(const std::vector<bool>& present) const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size_; ++rank) {
    if (!present[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace seto
