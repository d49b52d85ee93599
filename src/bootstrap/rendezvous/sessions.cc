#include "src/bootstrap/rendezvous/sessions.h"

namespace seto {
namespace {

unsigned long long printed(std::uint64_t number) { return number + 1; }

}  // namespace

Sessions::Sessions(UniqueId::Serves serves, Deadline idle_until) : serves_(serves) {
  if (serves == UniqueId::Serves::communicator) open_[0] = std::make_unique<Session>(0, idle_until);
}

Result<Session*> Sessions::find(const Hello& hello) {
  const bool one_only = serves_ == UniqueId::Serves::communicator;
  if (const auto found = open_.find(one_only ? 0 : hello.number); found != open_.end()) {
    if (one_only || !found->second->state.full() || !found->second->state.broken().ok()) return found->second.get();
    return failure(Code::invalid_usage,
                   "rank %d joined init %llu of this job, which already has its %d ranks: another job uses the same root, or "
                   "its process was restarted",
                   hello.rank, printed(hello.number), found->second->state.size());
  }
  if (const auto found = ends_.find(hello.number); found != ends_.end() && !found->second.ok()) return found->second;
  const bool over = ends_.contains(hello.number) || (!ends_.empty() && hello.number < ends_.begin()->first);
  if (one_only || over) {
    return failure(Code::invalid_usage,
                   "rank %d joined init %llu of this job, which has ended: another job uses the same root, or its process was "
                   "restarted",
                   hello.rank, printed(hello.number));
  }
  if (open_.size() >= kOpenLimit) {
    return failure(Code::unavailable, "rank %d: %zu inits by one id are under way already", hello.rank, kOpenLimit);
  }
  auto& made = open_[hello.number];
  made = std::make_unique<Session>(hello.number, Deadline::never());
  return made.get();
}

void Sessions::forget(std::uint64_t number) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  ends_[number] = found->second->state.broken();
  open_.erase(found);
  if (ends_.size() > kEndLimit) ends_.erase(ends_.begin());
}

}  // namespace seto
