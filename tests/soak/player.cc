#include "tests/soak/player.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/soak/cutter.h"
#include "tests/soak/ending_run.h"
#include "tests/soak/making.h"
#include "tests/soak/watcher.h"

namespace seto::soak {
namespace {

constexpr std::uint64_t kMostComputeMs = 600;

}  // namespace

Player::Player(const Job& job, int rank, const Seat& seat) : job_(job), rank_(rank), streams_(std::make_unique<Streams>()) {
  if (seat.comm != nullptr) seats_[0] = seat;
}

// Marks the generation as failed after a problem, or the others would wait for this rank.
Player::~Player() {
  for (auto& [number, seat] : seats_) setoCommAbort(seat.comm);
}

Problem Player::play() {
  Watcher watcher(job_, seats_.count(0) != 0 ? seats_.at(0).comm : nullptr);
  for (std::size_t i = 0; i < job_.plan.acts.size(); ++i)
    if (const Problem problem = perform(job_.plan.acts[i]); !problem.empty())
      return "act " + std::to_string(i) + " (" + std::to_string(static_cast<int>(job_.plan.acts[i].what)) + "): " + problem;
  watcher.stop();
  const Problem problem = EndingRun(*this).run();
  return problem.empty() ? problem : std::string("ending ") + name_of(job_.plan.ending) + ": " + problem;
}

// While connections are cut, each rank computes before some of its acts: then no caller looks at the connections.
Problem Player::perform(const Act& act) {
  Random random(mixed(act.key, 200 + static_cast<std::uint64_t>(rank_)));
  if (job_.shape.cuts > 0 && random.one_in(3)) job_.cutter.compute(random.below(kMostComputeMs));
  switch (act.what) {
    case What::batch:
      return batch(act);
    case What::together:
      return together(act);
    case What::split:
      return split(act);
    case What::drop:
      return drop(act);
    default:
      return reject(act);
  }
}

// The values are drawn for all groups of the act, so that ranks in only some of the groups draw the same values.
Problem Player::batch(const Act& act) {
  Random random(act.key);
  const auto manner = static_cast<Manner>(random.below(kManners));
  const std::uint64_t many = 1 + random.below(5);
  Batch calls;
  for (std::uint64_t i = 0; i < many; ++i) {
    const int number = act.groups[random.below(act.groups.size())];
    const Operation one = draw(random, number, many == 1 ? kMostBytes : kMostBytes / 4);
    if (const auto found = seats_.find(number); found != seats_.end())
      calls.push_back(std::make_unique<Exchange>(found->second, one));
  }
  return run_checked(calls, manner, *streams_, job_.board.tally);
}

Operation Player::draw(Random& random, int number, std::size_t most_bytes) const {
  Operation one = drawn(random, group(number).size(), most_bytes);
  if (job_.plan.in_fp16) one.type = within_fp16(one.type);
  return one;
}

Problem Player::use_alone(int number, std::uint64_t key) const {
  Random random(mixed(key, static_cast<std::uint64_t>(number)));
  const Streams streams;
  for (std::uint64_t many = 1 + random.below(4); many > 0; --many) {
    const auto manner = static_cast<Manner>(random.below(kManners));
    Batch calls;
    for (std::uint64_t left = 1 + random.below(3); left > 0; --left)
      calls.push_back(std::make_unique<Exchange>(seats_.at(number), draw(random, number, std::size_t{128} << 10)));
    if (Problem problem = run_checked(calls, manner, streams, job_.board.tally); !problem.empty())
      return "group " + std::to_string(number) + ": " + problem;
  }
  return {};
}

Problem Player::together(const Act& act) {
  std::vector<std::thread> threads;
  std::vector<Problem> problems(act.groups.size());
  for (std::size_t i = 0; i < act.groups.size(); ++i)
    if (seats_.count(act.groups[i]) != 0)
      threads.emplace_back([&, i] {
        problems[i] = use_alone(act.groups[i], act.key);
        if (!problems[i].empty()) job_.board.given_up = true;
      });
  for (std::thread& thread : threads) thread.join();
  for (const Problem& problem : problems)
    if (!problem.empty()) return problem;
  return {};
}

Problem Player::split(const Act& act) {
  const auto found = seats_.find(act.groups[0]);
  if (found == seats_.end() || act.groups.size() < 2) return {};
  const Seat& parent = found->second;
  const Group& part = group(act.groups[1]);
  const int color = part.colors[static_cast<std::size_t>(parent.rank)];
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.splitShare = part.shares_context ? setoOn : setoOff;
  setoComm_t child = nullptr;
  const setoResult_t result = setoCommSplit(parent.comm, color < 0 ? SETO_SPLIT_NOCOLOR : color,
                                            part.keys[static_cast<std::size_t>(parent.rank)], &child, &config);
  const CallResult made = settled(parent.comm, result);
  ++job_.board.tally.splits;
  if (!made.ok()) return "split: " + made.description();
  if ((child == nullptr) != (color < 0)) return "split: a communicator without a color, or a color without a communicator";
  if (child == nullptr) return {};
  const int number = act.groups[static_cast<std::size_t>(color) + 1];
  Seat& seat = seats_[number] = {child, group(number).rank_of(rank_), group(number).size()};
  const CallResult ready = settled(child, setoInProgress);
  if (!ready.ok()) return "the split's child: " + ready.description();
  int said_rank = -1, said_ranks = -1;
  setoCommUserRank(child, &said_rank);
  setoCommCount(child, &said_ranks);
  if (said_rank == seat.rank && said_ranks == seat.ranks) return {};
  return "split: rank " + std::to_string(said_rank) + " of " + std::to_string(said_ranks) + " instead of " +
         std::to_string(seat.rank) + " of " + std::to_string(seat.ranks);
}

Problem Player::drop(const Act& act) {
  const auto found = seats_.find(act.groups[0]);
  if (found == seats_.end()) return {};
  const setoComm_t comm = found->second.comm;
  seats_.erase(found);
  if (act.key % 3 == 0)
    if (const CallResult ended = settled(comm, setoCommFinalize(comm)); !ended.ok()) return "finalize: " + ended.description();
  const CallResult destroyed = call_result_of(setoCommDestroy(comm));
  return destroyed.ok() ? Problem{} : "destroy: " + destroyed.description();
}

// The call ends on every rank, which learns whose call was wrong and why, and the next call is right again.
Problem Player::reject(const Act& act) {
  const auto found = seats_.find(act.groups[0]);
  if (found == seats_.end()) return {};
  const Seat& seat = found->second;
  const bool odd = seat.rank == act.odd;
  const std::size_t count = 1 + act.key % 3000, all = count * static_cast<std::size_t>(seat.ranks);
  std::vector<double> in(all), out(all);
  const auto type = odd ? static_cast<setoDataType_t>(13) : setoFloat64;
  const CallResult refused =
      call_result_of(act.key % 2 == 0 ? setoAllReduce(in.data(), out.data(), count, type, setoMax, seat.comm, nullptr)
                                      : setoAlltoAll(in.data(), out.data(), count, type, seat.comm, nullptr));
  if (odd) ++job_.board.tally.wrong_calls;
  ++job_.board.tally.checks;
  const bool right = odd ? refused.code == setoInvalidArgument : refused.code == setoRemoteError && refused.names(act.odd);
  if (!right || refused.text.find("datatype") == std::string::npos)
    return "rank " + std::to_string(act.odd) + " made a wrong call, and this rank got: " + refused.description();
  return {};
}

}  // namespace seto::soak
