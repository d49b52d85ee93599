#include "tests/software_gpu/thread_order.h"

#include <algorithm>

namespace seto::software_gpu {

Release ThreadOrder::release(Scope scope) {
  Release made{.at = now(), .gpu = block.gpu, .scope = scope, .past = past};
  ++clock_;
  return made;
}

void ThreadOrder::keep_widest(std::vector<Release>& releases, const Release& release) {
  std::erase_if(releases, [&](const Release& earlier) { return earlier.scope <= release.scope; });
  releases.push_back(release);
}

void ThreadOrder::release_by_fence(Scope scope) { keep_widest(fences_, release(scope)); }

void ThreadOrder::acquire_by_fence(Scope scope) {
  if (observed_.empty()) return;
  join(observed_, scope);
  std::erase_if(observed_, [&](const Release& one) { return knows(one.at); });
}

void ThreadOrder::sign(StrongWrite& write, std::uint64_t place, const Release* own) {
  write.releases.insert(write.releases.end(), fences_.begin(), fences_.end());
  if (own != nullptr) keep_widest(own_[place], *own);
  if (own_.empty()) return;
  if (const auto found = own_.find(place); found != own_.end())
    write.releases.insert(write.releases.end(), found->second.begin(), found->second.end());
}

bool ThreadOrder::has_observed(std::uint64_t place, const WriteRef& write, Scope scope) const {
  return std::any_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
    return seen.place == place && seen.write == write && seen.scope == scope && seen.at.phase == block.phase &&
           seen.at.clock == clock_;
  });
}

void ThreadOrder::keep_youngest(std::vector<Release>& releases, const Release& release) {
  const auto earlier = std::find_if(releases.begin(), releases.end(), [&](const Release& one) {
    return one.at.is_same_thread(release.at) && one.scope == release.scope;
  });
  if (earlier == releases.end())
    releases.push_back(release);
  else if (earlier->at.clock < release.at.clock)
    *earlier = release;
}

void ThreadOrder::observe(std::uint64_t place, const WriteRef& write, Scope scope, bool is_load) {
  const auto same = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& seen) { return seen.place == place; });
  Seen& seen = same != seen_.end() ? *same : seen_[next_seen_++ % seen_.size()];
  if (seen.place != place) seen.releases.clear();
  seen.place = place;
  seen.write = is_load ? write : nullptr;
  seen.scope = scope;
  seen.at = now();
  for (const Release& release : write->releases) {
    if (knows(release.at)) continue;
    keep_youngest(seen.releases, release);
    keep_youngest(observed_, release);
  }
}

void ThreadOrder::acquire_at(std::uint64_t place, Scope scope) {
  const auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& one) { return one.place == place; });
  if (seen == seen_.end() || seen->releases.empty()) return;
  join(seen->releases, scope);
  const auto is_known = [&](const Release& one) { return knows(one.at); };
  std::erase_if(seen->releases, is_known);
  std::erase_if(observed_, is_known);
}

void ThreadOrder::join(const std::vector<Release>& releases, Scope scope) {
  std::shared_ptr<Clocks> changed;
  for (const Release& release : releases) {
    const bool in_scope = can_see(scope, release.at, release.gpu) && can_see(release.scope, release.at, release.gpu);
    if (!in_scope || knows(release.at)) continue;
    if (changed == nullptr) changed = std::make_shared<Clocks>(*past);
    changed->join(*release.past);
    changed->add({&release.at, 1});
    past = changed;
  }
}

namespace {

std::shared_ptr<Clocks> joined_pasts(const std::vector<Release>& arrivals) {
  auto all = std::make_shared<Clocks>();
  const Clocks* last = nullptr;
  for (const Release& arrival : arrivals) {
    if (arrival.past.get() != last) all->join(*arrival.past);
    last = arrival.past.get();
  }
  return all;
}

}  // namespace

void join_arrivals(const std::vector<Release>& arrivals, const std::vector<ThreadOrder*>& leaving) {
  const auto all = joined_pasts(arrivals);
  std::vector<Moment> moments;
  for (const Release& arrival : arrivals) moments.push_back(arrival.at);
  all->add(moments);
  for (ThreadOrder* thread : leaving) thread->past = all;
}

void join_block(BlockOrder& block, const std::vector<Release>& arrivals, const std::vector<ThreadOrder*>& leaving) {
  ++block.phase;
  const std::shared_ptr<const Clocks>& first = arrivals.front().past;
  const bool is_shared = std::all_of(arrivals.begin(), arrivals.end(), [&](const Release& one) { return one.past == first; });
  if (is_shared && !first->has_entries_of(block.number)) return;
  const auto all = joined_pasts(arrivals);
  all->drop_entries_of(block.number);
  for (ThreadOrder* thread : leaving) thread->past = all;
}

}  // namespace seto::software_gpu
