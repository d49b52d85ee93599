#include "tests/soak/ending_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>

#include "tests/soak/making.h"

namespace seto::soak {
namespace {

constexpr std::size_t kMostBytesOfLast = std::size_t{256} << 10;

// Not a wait for anything: so that the fault falls anywhere in what others do.
void pass_time(std::uint64_t ns) {
  for (const std::uint64_t until = now_ns() + ns; now_ns() < until;) {
  }
}

}  // namespace

std::thread kill_this_process(const Job& job, const std::function<bool()>& when) {
  return std::thread([&job, when] {
    Random random(mixed(job.plan.key, 20));
    eventually(when, kInitMs);
    const std::uint64_t most_us = job.plan.ending == Ending::kill ? 3'000 : 40'000;
    pass_time(random.below(most_us) * 1'000);
    ++job.board.tally.kills;
    job.board.fault_ns = now_ns();
    ::kill(getpid(), SIGKILL);
  });
}

Finale::Finale(Player& player) : player_(player), job_(player.job_), plan_(player.job_.plan) {
  if (const auto found = player.seats_.find(plan_.group); found != player.seats_.end()) seat_ = found->second;
}

Trouble Finale::run() {
  Trouble trouble;
  ++job_.board.at_ending;
  if (is_culprit() && plan_.ending != Ending::kill_while_making)
    eventually([this] { return job_.board.at_ending == job_.shape.ranks || job_.board.given_up; }, kGenerationMs);
  switch (plan_.ending) {
    case Ending::finalize:
      trouble = finalize_all();
      break;
    case Ending::abort:
      trouble = abort();
      break;
    case Ending::abort_pending:
      trouble = abort_pending();
      break;
    case Ending::mismatch:
      trouble = mismatch();
      break;
    case Ending::kill:
    case Ending::kill_while_making:
      trouble = kill();
      break;
    default:
      break;
  }
  if (trouble.empty()) trouble = use_others();
  return trouble.empty() ? destroy_all() : trouble;
}

void Finale::note_fault() const { job_.board.fault_ns = now_ns(); }

// ---- orderly ----

Trouble Finale::finalize_all() {
  for (auto& [number, seat] : player_.seats_)
    if (const Heard ended = settled(seat.comm, setoCommFinalize(seat.comm)); !ended.well()) return "finalize: " + ended.told();
  return {};
}

Trouble Finale::destroy_all() {
  std::vector<int> order;
  for (const auto& [number, seat] : player_.seats_) order.push_back(number);
  Random random(mixed(plan_.key, 30 + static_cast<std::uint64_t>(player_.rank_)));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (const int number : order) {
    const setoComm_t comm = player_.seats_.at(number).comm;
    player_.seats_.erase(number);
    if (const Heard ended = heard(setoCommDestroy(comm)); !ended.well())
      return "destroy of group " + std::to_string(number) + ": " + ended.told();
  }
  return {};
}

// A failure is one communicator's affair: the others of the same contexts work, unless they have lost a rank.
Trouble Finale::use_others() {
  if (plan_.ending == Ending::destroy || plan_.ending == Ending::finalize) return {};
  const bool killed = plan_.ending == Ending::kill || plan_.ending == Ending::kill_while_making;
  for (auto& [number, seat] : player_.seats_) {
    if (number == plan_.group) continue;
    const auto& members = player_.group(number).members;
    const int lost = job_.shape.process_of(plan_.culprit);
    const bool whole = std::none_of(members.begin(), members.end(), [&](int one) { return job_.shape.process_of(one) == lost; });
    if (killed && !whole) continue;
    if (Trouble trouble = player_.use_alone(number, mixed(plan_.key, 40)); !trouble.empty()) return "afterwards, " + trouble;
  }
  return {};
}

// ---- faults ----

Trouble Finale::call_until_failure(std::uint64_t most, std::optional<Failure>& failure) {
  const Streams streams;
  Random random(mixed(plan_.key, 50));
  for (std::uint64_t done = 0; done < most && !job_.board.given_up; ++done) {
    Operation one = drawn(random, seat_.ranks, kMostBytesOfLast);
    const auto manner = static_cast<Manner>(random.below(kManners));
    if (done == 0) one.kind = Kind::all_reduce, one.count += 1;
    Batch call;
    call.push_back(std::make_unique<Exchange>(seat_, one));
    const std::uint64_t begun = now_ns();
    const Heard ended = soak::run(call, manner, streams);
    const std::uint64_t returned = now_ns();
    if (!ended.well()) {
      const std::uint64_t fault = job_.board.fault_ns;
      if (fault == 0) return "failed before anything was wrong: " + ended.told();
      failure = {ended, returned - std::min(returned, std::max(begun, fault))};
      return {};
    }
    if (Trouble trouble = check(call, job_.board.tally); !trouble.empty()) return trouble;
    ++calls_;
  }
  return {};
}

bool Finale::may_name(const Heard& what) const {
  if (plan_.ending != Ending::kill && plan_.ending != Ending::kill_while_making)
    return what.names(player_.group(plan_.group).rank_of(plan_.culprit));
  for (int rank = 0; rank < job_.shape.ranks; ++rank)
    if (job_.shape.process_of(rank) == job_.shape.process_of(plan_.culprit) && what.names(rank)) return true;
  return false;
}

Trouble Finale::judge(const std::optional<Failure>& failure, std::atomic<std::uint64_t>& slowest_us) {
  if (!failure.has_value()) return job_.board.given_up ? "gave up, as another rank has" : "never heard of the fault";
  const auto& [told, late_ns] = *failure;
  raise_to(slowest_us, late_ns / 1'000);
  ++job_.board.tally.checks;
  if (told.code != setoRemoteError || !may_name(told)) return "it names not the culprit: " + told.told();
  if (late_ns > kNoticeMs * job_.shape.patience * 1'000'000)
    return "heard after " + std::to_string(late_ns / 1'000'000) + " ms: " + told.told();
  setoResult_t state = setoSuccess;
  setoCommGetAsyncError(seat_.comm, &state);
  if (state != setoRemoteError) return "the asynchronous error is " + std::string(setoGetErrorString(state));
  const Heard again = heard(setoBarrier(seat_.comm, nullptr));
  if (again.code != told.code || again.text != told.text)
    return "the first reason was " + told.told() + ", then came " + again.told();
  return {};
}

Trouble Finale::abort() {
  if (seat_.comm == nullptr) return {};
  Random random(mixed(plan_.key, 60));
  std::optional<Failure> failure;
  if (!is_culprit()) {
    const Trouble trouble = call_until_failure(~std::uint64_t{0}, failure);
    return trouble.empty() ? judge(failure, job_.board.tally.slowest_abort_us) : trouble;
  }
  if (Trouble trouble = call_until_failure(random.below(20), failure); !trouble.empty()) return trouble;
  player_.seats_.erase(plan_.group);
  ++job_.board.tally.aborts;
  note_fault();
  const Heard aborted = heard(setoCommAbort(seat_.comm));
  return aborted.well() ? Trouble{} : "abort: " + aborted.told();
}

// While a thread of the culprit waits for a call on a stream, and perhaps one of the others has not come to it.
Trouble Finale::abort_pending() {
  if (seat_.comm == nullptr) return {};
  Random random(mixed(plan_.key, 70));
  const Group& group = player_.group(plan_.group);
  const int culprit = group.rank_of(plan_.culprit);
  const int absent = random.one_in(3) ? -1 : (culprit + 1) % group.size();
  const std::uint64_t delay_ns = random.below(5'000) * 1'000;
  if (!is_culprit()) {
    if (seat_.rank == absent && group.size() > 1)
      eventually([this] { return job_.board.fault_ns != 0 || job_.board.given_up; }, kGenerationMs);
    std::optional<Failure> failure;
    const Trouble trouble = call_until_failure(~std::uint64_t{0}, failure);
    return trouble.empty() ? judge(failure, job_.board.tally.slowest_abort_us) : trouble;
  }
  const Streams streams;
  Random same(mixed(plan_.key, 50));
  Operation one = drawn(same, seat_.ranks, kMostBytesOfLast);
  one.kind = Kind::all_reduce, one.count += 1;
  Exchange call(seat_, one);
  if (const Heard queued = heard(call.issue(streams[0])); !queued.well()) return "queueing: " + queued.told();
  call.issued();
  Heard waited;
  std::uint64_t returned = 0;
  std::thread waiter([&] {
    waited = heard(setoStreamWait(streams[0], 1, kOperationMs));
    returned = now_ns();
  });
  pass_time(delay_ns);
  player_.seats_.erase(plan_.group);
  ++job_.board.tally.aborts;
  note_fault();
  const Heard aborted = heard(setoCommAbort(seat_.comm));
  waiter.join();
  if (!aborted.well()) return "abort: " + aborted.told();
  const std::uint64_t late_ms = (returned - std::min(returned, job_.board.fault_ns.load())) / 1'000'000;
  if (late_ms > kNoticeMs * job_.shape.patience / 10)
    return "a pending call ended " + std::to_string(late_ms) + " ms after the abort: " + waited.told();
  if (waited.well() && absent >= 0 && returned < job_.board.fault_ns) return "a call ended well that one rank never came to";
  return {};
}

Trouble Finale::mismatch() {
  if (seat_.comm == nullptr) return {};
  Random random(mixed(plan_.key, 80));
  Operation one = drawn(random, seat_.ranks, kMostBytesOfLast);
  constexpr std::array<Kind, 4> kTwoWay = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all};
  one.kind = kTwoWay[random.below(kTwoWay.size())];
  if (is_culprit()) {
    one.count += 1 + random.below(40);
    ++job_.board.tally.wrong_calls;
  }
  const Streams streams;
  Batch call;
  call.push_back(std::make_unique<Exchange>(seat_, one));
  if (is_culprit()) note_fault();
  const std::uint64_t begun = now_ns();
  const Heard ended = soak::run(call, static_cast<Manner>(mixed(plan_.key, 81) % kManners), streams);
  const std::uint64_t returned = now_ns();
  if (ended.well()) return one.text() + ": ended well, though ranks disagree";
  const std::uint64_t fault = job_.board.fault_ns;
  if (fault == 0) return "failed before anything was wrong: " + ended.told();
  return judge(Failure{ended, returned - std::min(returned, std::max(begun, fault))}, job_.board.tally.slowest_mismatch_us);
}

Trouble Finale::kill() {
  if (seat_.comm == nullptr) return {};
  const std::uint64_t calls = mixed(plan_.key, 90) % 10;
  std::optional<Failure> failure;
  if (is_culprit() && plan_.ending == Ending::kill) {
    std::thread killer = kill_this_process(job_, [&] { return calls_ >= calls; });
    static_cast<void>(call_until_failure(~std::uint64_t{0}, failure));
    killer.join();
  }
  const Trouble trouble = call_until_failure(~std::uint64_t{0}, failure);
  return trouble.empty() ? judge(failure, job_.board.tally.slowest_kill_us) : trouble;
}

}  // namespace seto::soak
