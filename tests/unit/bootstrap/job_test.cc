// Ids that serve many inits, and results that are sent down a tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/outgoing_connection.h"
#include "src/bootstrap/tree/result_tree.h"
#include "src/net/local_socket.h"
#include "tests/support/tries.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::Answer;
using testing::as_threads;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::join_and_gather;
using testing::later;
using testing::loopback_network;
using testing::Place;
using testing::text_of;

constexpr auto kJob = UniqueId::Serves::job;

TEST(JobId, ServesOneInitAfterAnother) {
  Place place(kJob);
  const auto answers = as_threads(3, [&](Rank rank) -> Answer {
    for (int round = 0; round < 20; ++round) {
      auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, 3, later(), testing::loopback_network());
      if (!bootstrap.ok()) return bootstrap.status();
      auto all = bootstrap->all_gather(std::to_string(round), later());
      if (!all.ok()) return all;
      for (const std::string& one : *all) EXPECT_EQ(one, std::to_string(round));
    }
    return std::vector<std::string>{};
  });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_FALSE(place.server->finished());
}

TEST(JobId, SeveralInitsAtOnce) {
  Place place(kJob);
  const auto answers = as_threads(2, [&](Rank rank) -> Answer {
    std::vector<RendezvousBootstrap> held;
    for (int round = 0; round < 5; ++round) {
      auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, 2, later(), testing::loopback_network());
      if (!bootstrap.ok()) return bootstrap.status();
      held.push_back(std::move(bootstrap).value());
    }
    for (std::size_t round = held.size(); round-- > 0;) {
      auto all = held[round].all_gather(std::to_string(round), later());
      if (!all.ok()) return all;
      EXPECT_THAT(*all, ElementsAre(std::to_string(round), std::to_string(round)));
    }
    return std::vector<std::string>{};
  });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
}

TEST(JobId, AFailedInitDoesNotAffectTheNext) {
  Place place(kJob);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(testing::with_growing_time([&](std::uint64_t ms) {
                const std::uint64_t longer_ms = std::min(testing::kLongMs, 10 * ms);
                const auto failed = as_threads(2, [&](Rank rank) {
                  return join_and_gather(place.bytes, rank, 3, Deadline::after_ms(rank == 0 ? ms : longer_ms));
                });
                std::string problem;
                for (const Answer& answer : failed) problem += testing::lacks(text_of(answer), "rank 2 of 3 did not join");
                const Answer late = join_and_gather(place.bytes, 2, 3, later());
                return problem + testing::lacks(text_of(late), "rank 2 of 3 did not join");  // it hears why
              }),
              "");
    const auto answers = as_threads(3, [&](Rank rank) { return join_and_gather(place.bytes, rank, 3, later()); });
    for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  }
}

TEST(JobId, ARankOfAnotherInitFailsWithTheReason) {
  Place place(kJob);
  const auto first = as_threads(2, [&](Rank rank) { return join_and_gather(place.bytes, rank, 2, later()); });
  for (const Answer& answer : first) EXPECT_TRUE(answer.ok());
  RendezvousBootstrap::Request stale;
  stale.server = place.id.address;
  stale.key = rendezvous_key(place.id.token);
  stale.size = 2;
  const auto late = RendezvousBootstrap::join(stale, later());
  EXPECT_THAT(std::string(late.status().text()), HasSubstr("rank 0 joined init 1 of this job, wh"));
  EXPECT_THAT(std::string(late.status().text()), HasSubstr("another job uses the same root, or its process was restarted"));
}

TEST(Tree, EveryRankIsAChildOfItsParent) {
  for (const int size : {1, 32, 33, 64, 1'000, 65'536}) {
    std::vector<int> fathered(static_cast<std::size_t>(size));
    for (Rank rank = 0; rank < size; ++rank) {
      for (const Rank child : tree_children(rank, size)) {
        EXPECT_EQ(tree_parent(child), rank);
        ++fathered[static_cast<std::size_t>(child)];
      }
    }
    const int total = std::accumulate(fathered.begin(), fathered.end(), 0);
    EXPECT_EQ(total, has_tree(size) ? size - kTreeTops : 0);
  }
  EXPECT_THAT(tree_children(40, 33), IsEmpty());
  EXPECT_THAT(tree_children(-1, 64), IsEmpty());
}

int log2_of(int size) {
  int bits = 0;
  while ((1 << bits) < size) ++bits;
  return bits;
}

// Messages as long as those of real ranks, then short ones, as in an init.
// Returns the bytes at the root for each rank.
std::uint64_t bytes_of_a_gather(Place& place, const UniqueIdBytes& id, int size) {
  const std::string mine(400, 'm');
  const auto answers = as_threads(size, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(id, rank, size, later(), loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    auto all = bootstrap->all_gather(mine + std::to_string(rank), later());
    if (!all.ok()) return all;
    auto retry = bootstrap->all_gather(std::to_string(rank), later());
    if (!retry.ok()) return retry;
    EXPECT_EQ((*retry)[static_cast<std::size_t>(size - 1)], std::to_string(size - 1));
    return all;
  });
  for (const Answer& answer : answers) {
    EXPECT_TRUE(answer.ok()) << answer.status().text();
    for (Rank rank = 0; answer.ok() && rank < size; ++rank)
      EXPECT_EQ(answer.value()[static_cast<std::size_t>(rank)], mine + std::to_string(rank));
  }
  const std::uint64_t each = place.server->traffic() / static_cast<std::uint64_t>(size);
  std::printf("%d ranks: %llu bytes at the root for each rank\n", size, static_cast<unsigned long long>(each));
  return each;
}

// A rank whose parent gets no core for some seconds asks the server instead, which then sends more. So the best of some tries
// counts.
void expect_root_sends_little(int size, const std::function<std::uint64_t()>& gather) {
  const std::uint64_t most = static_cast<std::uint64_t>(log2_of(size)) * 1'024;
  EXPECT_LE(testing::least_of(testing::kMostTries, most + 1, gather), most) << "bytes at the root for each rank";
}

TEST(Tree, TheRootSendsLittle) {
  for (const int size : {64, 256}) {
    expect_root_sends_little(size, [size] {
      Place place;
      return bytes_of_a_gather(place, place.bytes, size);
    });
  }
}

TEST(Tree, TheRootSendsLittleOverTcp) {
  expect_root_sends_little(64, [] {
    Place place(UniqueId::Serves::communicator, Listeners::Reach::network);
    return bytes_of_a_gather(place, place.from_afar(), 64);
  });
}

// Rank 0 has eight children, and takes part in another init.
TEST(Tree, ARankWithoutAResultAsksTheServer) {
  constexpr int kRanks = 40;
  Place place;
  LogCapture log;
  set_log_level(LogLevel::info);
  const auto answers = as_threads(kRanks, [&](Rank rank) -> Answer {
    RendezvousBootstrap::Request request;
    request.server = place.id.address;
    request.key = rendezvous_key(place.id.token);
    // Connections to ranks of another init do not authenticate.
    request.number = rank == 0 ? 1 : 0;
    request.rank = rank;
    request.size = kRanks;
    request.network = testing::loopback_network();
    auto bootstrap = RendezvousBootstrap::join(request, later());
    if (!bootstrap.ok()) return bootstrap.status();
    auto first = bootstrap->all_gather(std::string(100, 'a'), later());
    if (!first.ok()) return first;
    return bootstrap->all_gather(std::string(100, 'b'), later());
  });
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_EQ(answer.value()[39], std::string(100, 'b'));
  }
  set_log_level(LogLevel::warn);
  const auto orphans = log.lines();
  EXPECT_EQ(
      std::count_if(orphans.begin(), orphans.end(),
                    [](const std::string& line) { return line.find("because rank 0 does not deliver") != std::string::npos; }),
      kTreeFan);
}

// A child that contributes and then reads nothing, like a stopped process.
class SilentRank final {
 public:
  SilentRank(const Place& place, Rank rank, int size) {
    Claim claim;
    claim.purpose = static_cast<std::uint8_t>(RendezvousPurpose::rendezvous);
    claim.caller_context = static_cast<std::uint64_t>(rank);
    OutgoingConnection call(place.id.address, rendezvous_key(place.id.token), claim);
    call.begin(later());
    while (!call.over()) {
      std::vector<pollfd> entries;
      call.prepare(entries);
      static_cast<void>(poll(entries.data(), entries.size(), call.wait_ms()));
      call.advance();
    }
    fd_ = call.take().value();
    send_to(encode_hello({0, rank, size, testing::kLongMs, {}}));
    EXPECT_TRUE(wait_for(fd_.get(), POLLIN, later()).ok()) << "all ranks have joined";
    send_to(encode_contribution(testing::kLongMs, "mine"));
  }

 private:
  void send_to(const std::string& words) const {
    EXPECT_EQ(send(fd_.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  }

  SecureStream fd_;
};

// Rank 0 has eight children. One does not read. If another child has the result, rank 0 has it too and waits for the child that
// does not read.
TEST(Tree, AnInitThatIsAbortedWhileItForwardsEnds) {
  constexpr int kRanks = 40;
  const std::vector<Rank> children = tree_children(0, kRanks);
  const Rank silent = children.front();
  Place place;
  std::atomic<bool> given_up{false};
  const Deadline later_than = later();
  const auto answers = as_threads(kRanks, [&](Rank rank) -> Answer {
    if (rank == silent) {
      const SilentRank one(place, rank, kRanks);
      while (!given_up && !later_than.passed()) std::this_thread::yield();
      return failure(Code::internal, "silent");
    }
    const Deadline until = later();
    auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, kRanks, until, testing::loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    auto all = bootstrap->all_gather(std::string(100, 'a'), rank == 0 ? until.unless(&given_up) : until);
    if (rank == children.back()) given_up = true;
    return all;
  });
  for (Rank rank = 1; rank < kRanks; ++rank) {
    if (rank == silent) continue;
    const Answer& answer = answers[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(answer.ok()) << text_of(answer);
  }
  EXPECT_THAT(text_of(answers[0]), HasSubstr("rank 0: its init was given up")) << "it waited for the silent one";
}

}  // namespace
}  // namespace seto
