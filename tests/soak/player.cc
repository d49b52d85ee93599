#include "tests/soak/player.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/soak/ending_run.h"
#include "tests/soak/making.h"
#include "tests/soak/watcher.h"

namespace seto::soak {

Player::Player(const Job& job, int rank, const Seat& seat) : job_(job), rank_(rank), streams_(std::make_unique<Streams>()) {
  if (seat.comm != nullptr) seats_[0] = seat;
}

// After trouble: or the others would wait for this rank.
Player::~Player() {
  for (auto& [number, seat] : seats_) setoCommAbort(seat.comm);
}

Trouble Player::play() {
  Watcher watcher(job_, seats_.count(0) != 0 ? seats_.at(0).comm : nullptr);
  for (std::size_t i = 0; i < job_.plan.acts.size(); ++i)
    if (const Trouble trouble = perform(job_.plan.acts[i]); !trouble.empty())
      return "act " + std::to_string(i) + " (" + std::to_string(static_cast<int>(job_.plan.acts[i].what)) + "): " + trouble;
  watcher.stop();
  const Trouble trouble = Finale(*this).run();
  return trouble.empty() ? trouble : std::string("ending ") + name_of(job_.plan.ending) + ": " + trouble;
}

Trouble Player::perform(const Act& act) {
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

// Drawn for all groups of the act, so that ranks that are in some of them draw alike.
Trouble Player::batch(const Act& act) {
  Random random(act.key);
  const auto manner = static_cast<Manner>(random.below(kManners));
  const std::uint64_t many = 1 + random.below(5);
  Batch calls;
  for (std::uint64_t i = 0; i < many; ++i) {
    const int number = act.groups[random.below(act.groups.size())];
    const Operation one = drawn(random, group(number).size(), many == 1 ? kMostBytes : kMostBytes / 4);
    if (const auto found = seats_.find(number); found != seats_.end())
      calls.push_back(std::make_unique<Exchange>(found->second, one));
  }
  return run_checked(calls, manner, *streams_, job_.board.tally);
}

Trouble Player::use_alone(int number, std::uint64_t key) const {
  Random random(mixed(key, static_cast<std::uint64_t>(number)));
  const Streams streams;
  for (std::uint64_t many = 1 + random.below(4); many > 0; --many) {
    const auto manner = static_cast<Manner>(random.below(kManners));
    Batch calls;
    for (std::uint64_t left = 1 + random.below(3); left > 0; --left)
      calls.push_back(std::make_unique<Exchange>(seats_.at(number), drawn(random, group(number).size(), std::size_t{128} << 10)));
    if (Trouble trouble = run_checked(calls, manner, streams, job_.board.tally); !trouble.empty())
      return "group " + std::to_string(number) + ": " + trouble;
  }
  return {};
}

Trouble Player::together(const Act& act) {
  std::vector<std::thread> threads;
  std::vector<Trouble> troubles(act.groups.size());
  for (std::size_t i = 0; i < act.groups.size(); ++i)
    if (seats_.count(act.groups[i]) != 0)
      threads.emplace_back([&, i] {
        troubles[i] = use_alone(act.groups[i], act.key);
        if (!troubles[i].empty()) job_.board.given_up = true;
      });
  for (std::thread& thread : threads) thread.join();
  for (const Trouble& trouble : troubles)
    if (!trouble.empty()) return trouble;
  return {};
}

Trouble Player::split(const Act& act) {
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
  const Heard made = settled(parent.comm, result);
  ++job_.board.tally.splits;
  if (!made.well()) return "split: " + made.told();
  if ((child == nullptr) != (color < 0)) return "split: a communicator for no color, or none for one";
  if (child == nullptr) return {};
  const int number = act.groups[static_cast<std::size_t>(color) + 1];
  Seat& seat = seats_[number] = {child, group(number).rank_of(rank_), group(number).size()};
  const Heard ready = settled(child, setoInProgress);
  if (!ready.well()) return "the split's child: " + ready.told();
  int said_rank = -1, said_ranks = -1;
  setoCommUserRank(child, &said_rank);
  setoCommCount(child, &said_ranks);
  if (said_rank == seat.rank && said_ranks == seat.ranks) return {};
  return "split: rank " + std::to_string(said_rank) + " of " + std::to_string(said_ranks) + " instead of " +
         std::to_string(seat.rank) + " of " + std::to_string(seat.ranks);
}

Trouble Player::drop(const Act& act) {
  const auto found = seats_.find(act.groups[0]);
  if (found == seats_.end()) return {};
  const setoComm_t comm = found->second.comm;
  seats_.erase(found);
  if (act.key % 3 == 0)
    if (const Heard ended = settled(comm, setoCommFinalize(comm)); !ended.well()) return "finalize: " + ended.told();
  const Heard destroyed = heard(setoCommDestroy(comm));
  return destroyed.well() ? Trouble{} : "destroy: " + destroyed.told();
}

// It ends on every rank, which learns whose call was wrong and what was wrong with it, and the next call is right again.
Trouble Player::reject(const Act& act) {
  const auto found = seats_.find(act.groups[0]);
  if (found == seats_.end()) return {};
  const Seat& seat = found->second;
  const bool odd = seat.rank == act.odd;
  const std::size_t count = 1 + act.key % 3000, all = count * static_cast<std::size_t>(seat.ranks);
  std::vector<double> in(all), out(all);
  const auto type = odd ? static_cast<setoDataType_t>(13) : setoFloat64;
  const Heard refused = heard(act.key % 2 == 0 ? setoAllReduce(in.data(), out.data(), count, type, setoMax, seat.comm, nullptr)
                                               : setoAlltoAll(in.data(), out.data(), count, type, seat.comm, nullptr));
  if (odd) ++job_.board.tally.wrong_calls;
  ++job_.board.tally.checks;
  const bool right = odd ? refused.code == setoInvalidArgument : refused.code == setoRemoteError && refused.names(act.odd);
  if (!right || refused.text.find("datatype") == std::string::npos)
    return "rank " + std::to_string(act.odd) + " made a wrong call, and this rank heard: " + refused.told();
  return {};
}

}  // namespace seto::soak
