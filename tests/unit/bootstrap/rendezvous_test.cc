// The rendezvous of one machine over its real sockets, with ranks as threads and as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/bootstrap/rendezvous/servers.h"
#include "src/net/local_socket.h"
#include "tests/support/child_process.h"
#include "tests/support/tries.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::Answer;
using ::testing::AnyOf;
using testing::as_threads;
using testing::ChildProcess;
using testing::ForkGate;
using ::testing::HasSubstr;
using testing::text_of;

using testing::ends_within;
using testing::join_and_gather;
using testing::kLongMs;
using testing::lacks;
using testing::later;
using testing::Place;
using testing::with_growing_time;

TEST(Rendezvous, ThreadsGatherManyRoundsAndServerEnds) {
  Place place;
  constexpr int kRanks = 4;
  const auto answers = as_threads(kRanks, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, kRanks, later(), testing::loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    for (int round = 0; round < 50; ++round) {
      const std::string mine(static_cast<std::size_t>(rank * round), static_cast<char>('a' + rank));
      auto all = bootstrap->all_gather(mine, later());
      if (!all.ok()) return all;
      for (int other = 0; other < kRanks; ++other) {
        EXPECT_EQ((*all)[static_cast<std::size_t>(other)].size(), static_cast<std::size_t>(other * round));
      }
    }
    return bootstrap->all_gather(std::string(kGatherMessageLimit, 'x'), later());
  });
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_EQ(answer.value()[3].size(), kGatherMessageLimit);
  }
  EXPECT_TRUE(ends_within(*place.server, kLongMs));
}

TEST(Rendezvous, OneRankAlone) {
  Place place;
  EXPECT_TRUE(join_and_gather(place.bytes, 0, 1, later()).ok());
}

TEST(Rendezvous, DeadlineNamesTheMissingOnEveryRankThatJoined) {
  EXPECT_EQ(with_growing_time([](std::uint64_t ms) {
              Place place;
              const std::uint64_t longer_ms = std::min(kLongMs, 10 * ms);
              const auto answers = as_threads(2, [&](Rank rank) {
                return join_and_gather(place.bytes, rank * 2, 5, Deadline::after_ms(rank == 0 ? ms : longer_ms));
              });
              std::string problem;
              for (const Answer& answer : answers) problem += lacks(text_of(answer), "ranks 1, 3 and 4 of 5 did not join");
              if (!problem.empty()) return problem;
              for (const Answer& answer : answers) EXPECT_EQ(answer.status().code(), Code::timeout);
              const std::string late = text_of(join_and_gather(place.bytes, 4, 5, later()));
              EXPECT_EQ(late, text_of(answers[0])) << "a late rank gets the reason";
              return problem;
            }),
            "");
}

TEST(Rendezvous, DeadlineOfARoundNamesRanksWithoutAMessage) {
  EXPECT_EQ(with_growing_time([](std::uint64_t ms) {
              Place place;
              std::atomic<int> done{0};
              const auto answers = as_threads(3, [&](Rank rank) -> Answer {
                auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, 3, later(), testing::loopback_network());
                if (!bootstrap.ok()) return bootstrap.status();
                if (rank == 1) {
                  while (done.load() < 2) poll(nullptr, 0, 1);
                  return failure(Code::internal, "silent");
                }
                auto answer = bootstrap->all_gather("x", Deadline::after_ms(ms));
                ++done;
                return answer;
              });
              constexpr const char* kExpected = "rank 1 of 3 did not join";
              return lacks(text_of(answers[0]), kExpected) + lacks(text_of(answers[2]), kExpected);
            }),
            "");
}

struct Claim {
  Rank rank;
  int size;
};

std::vector<Answer> join_with(const Place& place, const std::vector<Claim>& claims) {
  return as_threads(static_cast<int>(claims.size()), [&](Rank index) {
    const Claim& claim = claims[static_cast<std::size_t>(index)];
    return join_and_gather(place.bytes, claim.rank, claim.size, later());
  });
}

// The process of the server fails with the others and ends, but not before late ranks have received the reason, and no later.
TEST(Rendezvous, AnEndingServerSendsTheReasonToLateRanks) {
  for (const std::vector<Claim>& late : {std::vector<Claim>{{1, 4}, {2, 4}}, {{7, 4}, {1, 3}}}) {
    Place place(UniqueId::Serves::communicator, Listeners::Reach::machine, static_cast<int>(kLongMs));
    for (const Answer& answer : join_with(place, {{0, 4}, {0, 4}}))
      EXPECT_THAT(text_of(answer), HasSubstr("rank 0 joined twice"));
    place.server->stop();
    for (const Answer& answer : join_with(place, late)) EXPECT_THAT(text_of(answer), HasSubstr("rank 0 joined twice"));
    EXPECT_TRUE(ends_within(*place.server, kLongMs / 2)) << "all four have joined";
  }
}

TEST(Rendezvous, AnEndingServerDoesNotWaitForLateRanksForEver) {
  Place place;
  for (const Answer& answer : join_with(place, {{0, 4}, {0, 4}})) EXPECT_FALSE(answer.ok());
  place.server->stop();
  EXPECT_TRUE(ends_within(*place.server, kShutdownMs + 5'000));
}

TEST(Rendezvous, WrongRanksAndSizesAreNamedOnEveryRank) {
  const struct {
    std::vector<Claim> claims;
    const char* text;
  } cases[] = {
      {{{0, 3}, {1, 3}, {1, 3}}, "rank 1 joined twice"},
      {{{0, 2}, {5, 2}}, "rank 5 is out of range: the communicator has 2 ranks"},
      {{{0, 3}, {-1, 3}}, "rank -1 is out of range"},
      {{{0, 3}, {1, 70'000}}, "rank 1 says that the communicator has 70000 ranks: it can have 1 to 65536"},
  };
  for (const auto& one : cases) {
    const Place place;
    for (const Answer& answer : join_with(place, one.claims)) EXPECT_THAT(text_of(answer), HasSubstr(one.text));
  }
  const Place place;
  for (const Answer& answer : join_with(place, {{0, 3}, {1, 4}})) {
    EXPECT_THAT(text_of(answer), AnyOf(HasSubstr("rank 1 says that the communicator has 4 ranks, rank 0 says 3"),
                                       HasSubstr("rank 0 says that the communicator has 3 ranks, rank 1 says 4")));
  }
}

TEST(Rendezvous, SecondUseIsReported) {
  Place place;
  const auto answers = as_threads(2, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, 2, later(), testing::loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    auto first = bootstrap->all_gather("x", later());
    if (rank == 0) {
      EXPECT_THAT(text_of(join_and_gather(place.bytes, 0, 2, later())),
                  HasSubstr("an id serves one communicator, make a new one"));
    }
    auto second = bootstrap->all_gather("y", later());
    return first.ok() ? second : first;
  });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << "the communicator is not affected: " << answer.status().text();
  ASSERT_TRUE(ends_within(*place.server, kLongMs));
  const Answer answer = join_and_gather(place.bytes, 0, 2, later());
  EXPECT_EQ(answer.status().code(), Code::remote_error);
  EXPECT_THAT(text_of(answer), HasSubstr("it was used before (an id serves one communicator)"));
}

TEST(Rendezvous, WrongTokenIsRejectedAndAffectsNobody) {
  Place place;
  LogCapture log;
  UniqueId forged = place.id;
  forged.token = random_token();
  EXPECT_THAT(text_of(join_and_gather(encode(forged), 0, 2, later())), HasSubstr("has no job with this secret"));
  EXPECT_TRUE(testing::comes_to_say(log, "it uses another secret than this job"));
  for (const Answer& answer : join_with(place, {{0, 2}, {1, 2}})) EXPECT_TRUE(answer.ok()) << answer.status().text();
}

TEST(Rendezvous, AnotherSecretIsReportedWithAMissingRank) {
  EXPECT_EQ(with_growing_time([](std::uint64_t ms) {
              Place place;
              UniqueId forged = place.id;
              forged.token = random_token();
              EXPECT_FALSE(join_and_gather(encode(forged), 1, 2, later()).ok());
              const std::string missing = text_of(join_and_gather(place.bytes, 0, 2, Deadline::after_ms(ms)));
              return lacks(missing, "rank 1 of 2 did not join") + lacks(missing, "connected with another secret than this job's");
            }),
            "");
}

TEST(Rendezvous, UnauthenticatedConnectionsAreClosedInBoundedTime) {
  Place place;
  LogCapture log;
  auto garbage = connect_local(place.id.address.socket_name, SocketKind::stream, later());
  auto silent = connect_local(place.id.address.socket_name, SocketKind::stream, later());
  ASSERT_TRUE(garbage.ok() && silent.ok());
  ASSERT_EQ(send(garbage->get(), "GET /metrics HTTP/1.1\r\n\r\n", 25, MSG_NOSIGNAL), 25);
  for (const PrivateFd* connection : {&*garbage, &*silent}) {
    char byte = 0;
    ASSERT_TRUE(wait_for(connection->get(), POLLIN, Deadline::after_ms(kRendezvousUnauthenticatedMs + 3'000)).ok());
    EXPECT_LE(recv(connection->get(), &byte, 1, MSG_DONTWAIT), 0);
  }
  EXPECT_TRUE(testing::comes_to_say(log, "is not the preamble of a process of this library"));
  for (const Answer& answer : join_with(place, {{0, 2}, {1, 2}})) EXPECT_TRUE(answer.ok());
}

TEST(Rendezvous, ProcessesGather) {
  ForkGate gate;
  const auto body = [&gate](const UniqueIdBytes& id, Rank rank) {
    return [&gate, &id, rank] {
      gate.pass();  // so that the server has nothing to do while its process forks
      const Answer answer = join_and_gather(id, rank, 4, later());
      EXPECT_TRUE(answer.ok()) << answer.status().text();
      return answer.ok() && answer.value()[3] == "rank 3";
    };
  };
  Place place;
  std::vector<ChildProcess> children;
  for (Rank rank = 1; rank < 4; ++rank) children.emplace_back(body(place.bytes, rank));
  gate.open();
  EXPECT_TRUE(join_and_gather(place.bytes, 0, 4, later()).ok());
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

TEST(Rendezvous, KilledRankIsNamedWithoutADeadline) {
  Place place;
  ChildProcess victim([&] {
    auto bootstrap = RendezvousBootstrap::join(place.bytes, 2, 3, later(), testing::loopback_network());
    if (!bootstrap.ok() || !bootstrap->all_gather("alive", later()).ok()) return false;
    pause();
    return false;
  });
  const auto answers = as_threads(2, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(place.bytes, rank, 3, later(), testing::loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    if (auto first = bootstrap->all_gather("x", later()); !first.ok()) return failure(Code::internal, "first round");
    if (rank == 0) victim.kill_now();
    return bootstrap->all_gather("y", Deadline::never());
  });
  for (const Answer& answer : answers) EXPECT_THAT(text_of(answer), HasSubstr("rank 2 has left the rendezvous"));
}

TEST(Rendezvous, DeadServerIsDetectedAtOnce) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  ChildProcess maker([&] {
    const auto id = create_unique_id(UniqueId::Serves::communicator, {}, later());
    if (!id.ok() || write(pipe_ends[1], id.value().data(), kUniqueIdSize) != kUniqueIdSize) return false;
    pause();
    return false;
  });
  UniqueIdBytes id;
  ASSERT_EQ(read(pipe_ends[0], id.data(), id.size()), static_cast<ssize_t>(id.size()));
  const auto answers = as_threads(2, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(id, rank, 2, later(), testing::loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    if (rank == 0) maker.kill_now();
    static_cast<void>(bootstrap->all_gather("x", later()).ok());
    return bootstrap->all_gather("y", later());
  });
  for (const Answer& answer : answers)
    EXPECT_THAT(text_of(answer), HasSubstr("the process that made the unique id, or of rank 0, has ended"));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(Rendezvous, BootstrapFailsInAForkedChild) {
  Place place;
  auto bootstrap = RendezvousBootstrap::join(place.bytes, 0, 1, later(), testing::loopback_network());
  ASSERT_TRUE(bootstrap.ok());
  ChildProcess child([&] {
    const Answer answer = bootstrap->all_gather("x", later());
    EXPECT_THAT(text_of(answer), HasSubstr("made before fork()"));
    return answer.status().code() == Code::invalid_usage;
  });
  EXPECT_TRUE(child.wait());
  EXPECT_TRUE(bootstrap->all_gather("x", later()).ok());
}

TEST(Rendezvous, OutOfDescriptorsIsNamedOnTheRanksThatJoined) {
  ChildProcess child([] {
    Place place;
    auto first = std::make_unique<std::optional<Answer>>();
    std::thread waiting([&] { first->emplace(join_and_gather(place.bytes, 0, 40, later())); });
    // The rank and the server's side need one descriptor each, so the limit is reached on one side or the other.
    const rlimit few{24, 24};
    setrlimit(RLIMIT_NOFILE, &few);
    const auto rest =
        as_threads(12, [&](Rank index) { return join_and_gather(place.bytes, index + 1, 40, Deadline::after_ms(3'000)); });
    waiting.join();
    EXPECT_FALSE((*first)->ok());
    int told = 0;
    for (const Answer& answer : rest) told += text_of(answer).find("raise ulimit -n") != std::string::npos ? 1 : 0;
    EXPECT_GT(told, 0);
    return true;
  });
  EXPECT_TRUE(child.wait());
}

TEST(Rendezvous, UniqueIdOfTheProcessAndUnusedOnesEnd) {
  ChildProcess child([] {
    const auto unused = create_unique_id(UniqueId::Serves::communicator, {}, Deadline::after_ms(0));
    const auto used = create_unique_id(UniqueId::Serves::communicator, {}, later());
    EXPECT_TRUE(unused.ok() && used.ok());
    const auto answers = as_threads(2, [&](Rank rank) { return join_and_gather(used.value(), rank, 2, later()); });
    for (const Answer& answer : answers) EXPECT_TRUE(answer.ok());
    EXPECT_THAT(text_of(join_and_gather(unused.value(), 0, 2, later())), HasSubstr("no rank joined before the deadline"));
    std::fflush(nullptr);
    exit(::testing::Test::HasFailure() ? 1 : 0);  // exit ends the servers that still run
    return true;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto
