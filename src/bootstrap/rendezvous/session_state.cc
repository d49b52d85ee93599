#include "src/bootstrap/rendezvous/session_state.h"

#include <limits>
#include <utility>

#include "src/bootstrap/bootstrap.h"

namespace seto {

Status RendezvousRoom::admit(const Hello& hello) {
  ++callers_;
  if (!broken_.ok()) return broken_;
  if (full()) {
    return failure(Code::invalid_usage,
                   "rank %d comes to a unique id that a communicator of %d ranks already uses: an id serves one, make a new one",
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
    come_.resize(count);
    left_.resize(count);
    contributed_.resize(count);
    messages_.resize(count);
  }
  come_[static_cast<std::size_t>(hello.rank)] = true;
  ++come_count_;
  sooner(hello.remaining_ms);
  if (full()) announcement_ = Announcement{FrameKind::ready, {}};
  return {};
}

Status RendezvousRoom::check(const Hello& hello) const {
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
  if (size_ != 0 && come_[static_cast<std::size_t>(hello.rank)]) {
    return failure(Code::invalid_argument,
                   "rank %d came twice: each rank is given to one process or thread, and each id or root to one job", hello.rank);
  }
  return {};
}

void RendezvousRoom::contribute(Rank rank, const Contribution& contribution) {
  if (!broken_.ok()) return;
  const auto index = static_cast<std::size_t>(rank);
  if (!full() || contributed_[index]) return break_with(failure(Code::remote_error, "rank %d spoke out of turn", rank));
  round_size_ += contribution.message.size();
  if (contribution.message.size() > kGatherMessageLimit || round_size_ > kGatherTotalLimit) {
    return break_with(
        failure(Code::invalid_argument,
                "rank %d: a bootstrap message of %zu bytes, %zu with those before it, is over the limit of %zu, or %zu in all",
                rank, contribution.message.size(), round_size_, kGatherMessageLimit, kGatherTotalLimit));
  }
  if (contributed_count_ == 0) until_ = Deadline::after_ms(contribution.remaining_ms);
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

void RendezvousRoom::finish_round() {
  announcement_ = Announcement{FrameKind::result, std::exchange(messages_, std::vector<std::string>(messages_.size()))};
  contributed_.assign(contributed_.size(), false);
  contributed_count_ = 0;
  round_size_ = 0;
}

void RendezvousRoom::leave(Rank rank) {
  const auto index = static_cast<std::size_t>(rank);
  left_[index] = true;
  ++left_count_;
  if (!full()) {
    return break_with(
        failure(Code::remote_error, "rank %d left before all had come: its process ended or its init failed", rank));
  }
  if (contributed_count_ > 0 && !contributed_[index]) {
    break_with(failure(Code::remote_error, "rank %d has left the rendezvous: its process ended or its init failed", rank));
  }
}

void RendezvousRoom::look_at_deadline(const std::string& hint) {
  if (!waiting() || !until_.passed()) return;
  if (size_ == 0) return break_with(failure(Code::timeout, "no rank came before the deadline of the init"));
  const Status missing = missing_ranks(absent(full() ? contributed_ : come_), size_);
  if (full() || hint.empty()) return break_with(missing);
  break_with(failure(missing.code(), "%s; %s", std::string(missing.text()).c_str(), hint.c_str()));
}

void RendezvousRoom::break_with(Status reason) {
  if (!broken_.ok()) return;
  broken_ = std::move(reason);
  announcement_ = Announcement{FrameKind::failure, {}};
  messages_.clear();
}

std::optional<RendezvousRoom::Announcement> RendezvousRoom::take_announcement() {
  return std::exchange(announcement_, std::nullopt);
}

int RendezvousRoom::remaining_ms() const { return waiting() ? until_.remaining_ms() : std::numeric_limits<int>::max(); }

void RendezvousRoom::sooner(std::uint64_t remaining_ms) {
  const Deadline other = Deadline::after_ms(remaining_ms);
  if (other.remaining_ms() < until_.remaining_ms()) until_ = other;
}

std::vector<Rank> RendezvousRoom::absent(const std::vector<bool>& present) const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size_; ++rank) {
    if (!present[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace seto
