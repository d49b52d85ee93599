#include "tests/soak/ending_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>

#include "tests/soak/cutter.h"
#include "tests/soak/making.h"

namespace seto::soak {
namespace {

constexpr std::size_t kMostBytesOfLast = std::size_t{256} << 10;

// Waits for no event; it only moves the fault to a random moment of the other ranks' work.
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

EndingRun::EndingRun(Player& player) : player_(player), job_(player.job_), plan_(player.job_.plan) {
  if (const auto found = player.seats_.find(plan_.group); found != player.seats_.end()) seat_ = found->second;
}

Problem EndingRun::run() {
  Problem problem;
  ++job_.board.at_ending;
  if (is_culprit() && plan_.ending != Ending::kill_while_making)
    eventually([this] { return job_.board.at_ending == job_.shape.ranks || job_.board.given_up; }, kGenerationMs);
  switch (plan_.ending) {
    case Ending::finalize:
      problem = finalize_all();
      break;
    case Ending::abort:
      problem = abort();
      break;
    case Ending::abort_pending:
      problem = abort_pending();
      break;
    case Ending::mismatch:
      problem = mismatch();
      break;
    case Ending::kill:
    case Ending::kill_while_making:
      problem = kill();
      break;
    default:
      break;
  }
  if (problem.empty()) problem = use_others();
  if (problem.empty() && job_.shape.cuts > 0) spare_connections();
  return problem.empty() ? destroy_all() : problem;
}

void EndingRun::note_fault() const { job_.board.fault_ns = now_ns(); }

// ---- orderly ----

Problem EndingRun::finalize_all() {
  for (auto& [number, seat] : player_.seats_)
    if (const CallResult ended = settled(seat.comm, setoCommFinalize(seat.comm)); !ended.ok())
      return "finalize: " + ended.description();
  return {};
}

// A communicator that is destroyed keeps nothing for its peers. So all have what it sent, or can still get it, before the first
// ends.
void EndingRun::spare_connections() const {
  job_.cutter.forbid();
  ++job_.board.spared;
  eventually([this] { return job_.board.spared == job_.shape.ranks || job_.board.given_up; }, kGenerationMs);
}

Problem EndingRun::destroy_all() {
  std::vector<int> order;
  for (const auto& [number, seat] : player_.seats_) order.push_back(number);
  Random random(mixed(plan_.key, 30 + static_cast<std::uint64_t>(player_.rank_)));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (const int number : order) {
    const setoComm_t comm = player_.seats_.at(number).comm;
    player_.seats_.erase(number);
    if (const CallResult ended = call_result_of(setoCommDestroy(comm)); !ended.ok())
      return "destroy of group " + std::to_string(number) + ": " + ended.description();
  }
  return {};
}

// A failure concerns one communicator only: the others of the same contexts work, unless they have lost a rank.
Problem EndingRun::use_others() {
  if (plan_.ending == Ending::destroy || plan_.ending == Ending::finalize) return {};
  const bool killed = plan_.ending == Ending::kill || plan_.ending == Ending::kill_while_making;
  for (auto& [number, seat] : player_.seats_) {
    if (number == plan_.group) continue;
    const auto& members = player_.group(number).members;
    const int lost = job_.shape.process_of(plan_.culprit);
    const bool whole = std::none_of(members.begin(), members.end(), [&](int one) { return job_.shape.process_of(one) == lost; });
    if (killed && !whole) continue;
    if (Problem problem = player_.use_alone(number, mixed(plan_.key, 40)); !problem.empty()) return "afterwards, " + problem;
  }
  return {};
}

// ---- faults ----

Problem EndingRun::call_until_failure(std::uint64_t most, std::optional<Failure>& failure) {
  const Streams streams;
  Random random(mixed(plan_.key, 50));
  for (std::uint64_t done = 0; done < most && !job_.board.given_up; ++done) {
    Operation one = drawn(random, seat_.ranks, kMostBytesOfLast);
    const auto manner = static_cast<Manner>(random.below(kManners));
    if (done == 0) one.kind = Kind::all_reduce, one.count += 1;
    Batch call;
    call.push_back(std::make_unique<Exchange>(seat_, one));
    const std::uint64_t begun = now_ns();
    const CallResult ended = soak::run(call, manner, streams);
    const std::uint64_t returned = now_ns();
    if (!ended.ok()) {
      const std::uint64_t fault = job_.board.fault_ns;
      if (fault == 0) return "failed before the fault: " + ended.description();
      failure = {ended, returned - std::min(returned, std::max(begun, fault))};
      return {};
    }
    if (Problem problem = check(call, job_.board.tally); !problem.empty()) return problem;
    ++calls_;
  }
  return {};
}

bool EndingRun::may_name(const CallResult& what) const {
  if (plan_.ending != Ending::kill && plan_.ending != Ending::kill_while_making)
    return what.names(player_.group(plan_.group).rank_of(plan_.culprit));
  for (int rank = 0; rank < job_.shape.ranks; ++rank)
    if (job_.shape.process_of(rank) == job_.shape.process_of(plan_.culprit) && what.names(rank)) return true;
  return false;
}

Problem EndingRun::judge(const std::optional<Failure>& failure, std::atomic<std::uint64_t>& slowest_us) {
  if (!failure.has_value()) return job_.board.given_up ? "stopped, because another rank failed" : "never reported the fault";
  const auto& [result, late_ns] = *failure;
  raise_to(slowest_us, late_ns / 1'000);
  ++job_.board.tally.checks;
  if (result.code != setoRemoteError || !may_name(result)) return "it does not name the culprit: " + result.description();
  if (late_ns > kNoticeMs * job_.shape.patience * 1'000'000)
    return "reported after " + std::to_string(late_ns / 1'000'000) + " ms: " + result.description();
  setoResult_t state = setoSuccess;
  setoCommGetAsyncError(seat_.comm, &state);
  if (state != setoRemoteError) return "the asynchronous error is " + std::string(setoGetErrorString(state));
  const CallResult again = call_result_of(setoBarrier(seat_.comm, nullptr));
  if (again.code != result.code || again.text != result.text)
    return "the first reason was " + result.description() + ", then " + again.description();
  return {};
}

Problem EndingRun::abort() {
  if (seat_.comm == nullptr) return {};
  Random random(mixed(plan_.key, 60));
  std::optional<Failure> failure;
  if (!is_culprit()) {
    const Problem problem = call_until_failure(~std::uint64_t{0}, failure);
    return problem.empty() ? judge(failure, job_.board.tally.slowest_abort_us) : problem;
  }
  if (Problem problem = call_until_failure(random.below(20), failure); !problem.empty()) return problem;
  player_.seats_.erase(plan_.group);
  ++job_.board.tally.aborts;
  note_fault();
  const CallResult aborted = call_result_of(setoCommAbort(seat_.comm));
  return aborted.ok() ? Problem{} : "abort: " + aborted.description();
}

// Aborts while a thread of the culprit waits for a call on a stream, which another rank may not have issued.
Problem EndingRun::abort_pending() {
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
    const Problem problem = call_until_failure(~std::uint64_t{0}, failure);
    return problem.empty() ? judge(failure, job_.board.tally.slowest_abort_us) : problem;
  }
  const Streams streams;
  Random same(mixed(plan_.key, 50));
  Operation one = drawn(same, seat_.ranks, kMostBytesOfLast);
  one.kind = Kind::all_reduce, one.count += 1;
  Exchange call(seat_, one);
  if (const CallResult queued = call_result_of(call.issue(streams[0])); !queued.ok()) return "queueing: " + queued.description();
  call.issued();
  CallResult waited;
  std::uint64_t returned = 0;
  std::thread waiter([&] {
    waited = call_result_of(setoStreamWait(streams[0], 1, kOperationMs));
    returned = now_ns();
  });
  pass_time(delay_ns);
  player_.seats_.erase(plan_.group);
  ++job_.board.tally.aborts;
  note_fault();
  const CallResult aborted = call_result_of(setoCommAbort(seat_.comm));
  waiter.join();
  if (!aborted.ok()) return "abort: " + aborted.description();
  const std::uint64_t late_ms = (returned - std::min(returned, job_.board.fault_ns.load())) / 1'000'000;
  if (late_ms > kNoticeMs * job_.shape.patience / 10)
    return "a pending call ended " + std::to_string(late_ms) + " ms after the abort: " + waited.description();
  if (waited.ok() && absent >= 0 && returned < job_.board.fault_ns) return "a call succeeded although one rank never issued it";
  return {};
}

Problem EndingRun::mismatch() {
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
  const CallResult ended = soak::run(call, static_cast<Manner>(mixed(plan_.key, 81) % kManners), streams);
  const std::uint64_t returned = now_ns();
  if (ended.ok()) return one.text() + ": succeeded, although ranks disagree";
  const std::uint64_t fault = job_.board.fault_ns;
  if (fault == 0) return "failed before the fault: " + ended.description();
  return judge(Failure{ended, returned - std::min(returned, std::max(begun, fault))}, job_.board.tally.slowest_mismatch_us);
}

Problem EndingRun::kill() {
  if (seat_.comm == nullptr) return {};
  const std::uint64_t calls = mixed(plan_.key, 90) % 10;
  std::optional<Failure> failure;
  if (is_culprit() && plan_.ending == Ending::kill) {
    std::thread killer = kill_this_process(job_, [&] { return calls_ >= calls; });
    static_cast<void>(call_until_failure(~std::uint64_t{0}, failure));
    killer.join();
  }
  const Problem problem = call_until_failure(~std::uint64_t{0}, failure);
  return problem.empty() ? judge(failure, job_.board.tally.slowest_kill_us) : problem;
}

}  // namespace seto::soak
