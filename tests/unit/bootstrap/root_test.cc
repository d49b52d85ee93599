// Roots by address, file and id, with ranks as threads and as processes.
#include "src/bootstrap/providers/root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/bootstrap/providers/root_file.h"
#include "src/bootstrap/rendezvous/servers.h"
#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"
#include "tests/support/child_process.h"
#include "tests/support/free_port.h"
#include "tests/support/tries.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::Answer;
using testing::as_threads;
using testing::ChildProcess;
using testing::free_port;
using ::testing::HasSubstr;
using testing::lacks;
using testing::later;
using testing::loopback_network;
using testing::text_of;
using testing::with_growing_time;

RootJoin at(const std::string& root, Rank rank, int ranks) {
  RootJoin join;
  join.root = root;
  join.rank = rank;
  join.ranks = ranks;
  join.network = loopback_network();
  return join;
}

// A rank with a secret joins over TCP, on one machine too.
RootJoin over_tcp(const std::string& root, Rank rank, int ranks) {
  RootJoin join = at(root, rank, ranks);
  join.secret = Secret::of_text("open sesame");
  return join;
}

RootJoin numbered(int number, RootJoin join) {
  join.number = static_cast<std::uint64_t>(number);
  return join;
}

Answer gather(const RootJoin& join, Deadline until) {
  auto bootstrap = join_root(join, until);
  if (!bootstrap.ok()) return bootstrap.status();
  return (*bootstrap)->all_gather("rank " + std::to_string(join.rank), until);
}

void expect_all(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_EQ(answer.value().back(), "rank " + std::to_string(answers.size() - 1));
  }
}

// Ends like a program, so that the ranks that it serves receive their last results.
ChildProcess child_that(const std::function<void()>& body) {
  return ChildProcess([&]() -> bool {
    body();
    std::fflush(nullptr);
    exit(::testing::Test::HasFailure() ? 1 : 0);
  });
}

// All tests run in children, because what rank 0 opens stays until its process ends.
void in_child(const std::function<void()>& body) { EXPECT_TRUE(child_that(body).wait()); }

// For with_growing_time(): runs an attempt in a child, which prints its problem.
std::string problem_in_child(const std::function<std::string()>& attempt) {
  ChildProcess child = child_that([&] {
    const std::string problem = attempt();
    if (problem.empty()) return;
    std::printf("%s\n", problem.c_str());
    std::fflush(nullptr);
    exit(1);
  });
  return child.wait() ? "" : "a child failed: see above";
}

std::string temporary_folder() {
  std::string path = ::testing::TempDir() + "seto_root_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

TEST(Root, ByAddressSeveralTimes) {
  in_child([] {
    const std::string port = std::to_string(free_port());
    for (const std::string& root : {"127.0.0.1:" + port, "localhost:" + std::to_string(free_port())}) {
      for (int round = 0; round < 3; ++round) {
        expect_all(as_threads(3, [&](Rank rank) { return gather(numbered(round, over_tcp(root, rank, 3)), later()); }));
      }
    }
  });
}

// A process listens at the address, reads from the first connection and closes it, as an ending process does.
class Ghost final {
 public:
  [[nodiscard]] SocketAddress address() const { return listener_.addresses.front(); }
  void hear_and_vanish() {
    ASSERT_TRUE(wait_for(listener_.sockets.front().get(), POLLIN, later()).ok());
    PrivateFd caller = accept_tcp(listener_.sockets.front());
    listener_.sockets.clear();
    ASSERT_TRUE(wait_for(caller.get(), POLLIN, later()).ok());
  }

 private:
  TcpListener listener_ = listen_tcp({parse_host("127.0.0.1").value()}, {}, 16).value();
};

TEST(Root, OthersWaitForRankZero) {
  in_child([] {
    Ghost ghost;
    const std::string root = to_text(ghost.address());
    Answer second = failure(Code::internal, "not yet");
    std::thread early([&] { second = gather(over_tcp(root, 1, 2), later()); });
    ghost.hear_and_vanish();
    const Answer first = gather(over_tcp(root, 0, 2), later());
    early.join();
    expect_all({first, second});
  });
}

// A process accepts the connection and sends nothing for longer than an attempt may last: a stopped process, or a busy machine.
TEST(Root, OthersWaitForASlowRankZero) {
  in_child([] {
    TcpListener silent = listen_tcp({parse_host("127.0.0.1").value()}, {}, 16).value();
    const std::string root = to_text(silent.addresses.front());
    Answer second = failure(Code::internal, "not yet");
    std::thread early([&] { second = gather(over_tcp(root, 1, 2), later()); });
    std::vector<PrivateFd> callers;
    for (int call = 0; call < 2; ++call) {
      EXPECT_TRUE(wait_for(silent.sockets.front().get(), POLLIN, later()).ok()) << "call " << call;
      callers.push_back(accept_tcp(silent.sockets.front()));
    }
    silent.sockets.clear();
    callers.clear();
    const Answer first = gather(over_tcp(root, 0, 2), later());
    early.join();
    expect_all({first, second});
  });
}

TEST(Root, AMissingRankZeroIsReported) {
  const std::string root = "127.0.0.1:" + std::to_string(free_port());
  const Answer answer = gather(over_tcp(root, 1, 2), Deadline::after_ms(100));
  EXPECT_THAT(text_of(answer), HasSubstr("rank 1: rank 0 does not answer at SETO_ROOT=" + root));
}

TEST(Root, APortInsideTheRangeOfTheJobIsNamed) {
  const TcpListener taken = listen_tcp({parse_host("127.0.0.1").value()}, {}, 1).value();
  const std::string port = std::to_string(taken.addresses.front().port);
  const std::string root = "127.0.0.1:" + port;
  RootJoin join = over_tcp(root, 0, 2);
  EXPECT_THAT(text_of(gather(join, Deadline::after_ms(100))), HasSubstr("port " + port + " is taken"));
  join.network.ports = parse_ports(port).value();
  EXPECT_THAT(text_of(gather(join, Deadline::after_ms(100))),
              HasSubstr("port " + port + " of SETO_ROOT=" + root + " lies inside SETO_PORTS=" + port + "-" + port));
}

TEST(Root, TwoJobsAtOneAddress) {
  in_child([] {
    const std::string root = "127.0.0.1:" + std::to_string(free_port());
    const auto of_job = [&](const char* job, Rank rank) {
      RootJoin join = over_tcp(root, rank, 2);
      join.job = job;
      return join;
    };
    expect_all(as_threads(2, [&](Rank rank) { return gather(of_job("16", rank), later()); }));
    ChildProcess other([&] {
      EXPECT_THAT(text_of(gather(of_job("16", 0), later())), HasSubstr("is taken: another process listens on it"));
      EXPECT_THAT(text_of(gather(of_job("16", 1), later())), HasSubstr("another job uses the same root"));
      EXPECT_THAT(text_of(gather(of_job("17", 1), later())), HasSubstr("belongs to another job"));
      return true;
    });
    EXPECT_TRUE(other.wait());
    expect_all(as_threads(2, [&](Rank rank) { return gather(numbered(1, of_job("16", rank)), later()); }));
  });
}

// No process can connect over the network, where any process could. The ranks may agree on a secret, so none is needed.
TEST(Root, LoopbackWithoutASecretServesOneUserAndOpensNoPort) {
  in_child([] {
    const std::uint16_t port = free_port();
    const std::string root = "127.0.0.1:" + std::to_string(port);
    for (int round = 0; round < 2; ++round) {
      expect_all(as_threads(2, [&](Rank rank) -> Answer {
        auto bootstrap = join_root(numbered(round, at(root, rank, 2)), later());
        if (!bootstrap.ok()) return bootstrap.status();
        EXPECT_EQ((*bootstrap)->secret(), nullptr) << "rank 0 proposes one";
        const auto caller = connect_tcp(parse_host("127.0.0.1")->with_port(port), later());
        EXPECT_EQ(caller.status().code(), Code::remote_error) << "a process listens at the port";
        return (*bootstrap)->all_gather("rank " + std::to_string(rank), later());
      }));
    }
  });
}

TEST(Root, LoopbackWithoutASecretRejectsOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  for (const bool own : {true, false}) {
    const std::string root = "127.0.0.1:" + std::to_string(free_port());
    const auto expect = [&](Rank rank) {
      const Answer answer = gather(at(root, rank, 2), Deadline::after_ms(own ? testing::kLongMs : 500));
      EXPECT_EQ(answer.ok(), own) << text_of(answer);
      if (own || rank == 1) return;
      EXPECT_THAT(text_of(answer), HasSubstr("rank 1 of 2 did not join"));
      EXPECT_THAT(text_of(answer), HasSubstr("without a secret is for ranks of one machine and user"));
    };
    ChildProcess first = child_that([&] { expect(0); });
    ChildProcess second = child_that([&] {
      constexpr uid_t kNobody = 65'534;
      ASSERT_TRUE(own || setuid(kNobody) == 0);
      expect(1);
    });
    EXPECT_TRUE(second.wait());
    EXPECT_TRUE(first.wait());
  }
}

TEST(Root, SecretsAreRequiredAndChecked) {
  for (const char* root : {"10.0.0.1:4711", "node1:4711", "[2001:db8::1]:4711"}) {
    const Answer answer = gather(at(root, 1, 2), later());
    EXPECT_THAT(text_of(answer), HasSubstr("SETO_SECRET_FILE"));
    EXPECT_THAT(text_of(answer), HasSubstr("SETO_ALLOW_NO_SECRET=1"));
  }
  in_child([] {
    const std::string root = "127.0.0.1:" + std::to_string(free_port());
    const auto with = [&](Rank rank, const char* text) {
      RootJoin join = at(root, rank, 2);
      if (*text != '\0') join.secret = Secret::of_text(text);
      return join;
    };
    std::vector<Secret> secrets(2);
    const auto answers = as_threads(2, [&](Rank rank) -> Answer {
      auto bootstrap = join_root(with(rank, "open sesame"), later());
      if (!bootstrap.ok()) return bootstrap.status();
      EXPECT_NE((*bootstrap)->secret(), nullptr);
      secrets[static_cast<std::size_t>(rank)] = *(*bootstrap)->secret();
      return std::vector<std::string>{};
    });
    for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_TRUE(equal(secrets[0], secrets[1]));
    EXPECT_THAT(text_of(gather(with(1, "open barley"), later())), HasSubstr("SETO_SECRET_FILE or SETO_SECRET differ"));
    const std::string expected = "rank 0 at SETO_ROOT=" + root + " has a secret, but rank 1 has none";
    EXPECT_EQ(with_growing_time(
                  [&](std::uint64_t ms) { return lacks(text_of(gather(with(1, ""), Deadline::after_ms(ms))), expected); }),
              "");
  });
}

struct OneSecret {
  Rank with_secret;
  Rank first;  // to begin
};

// Lets both ranks wait for so many milliseconds. Returns the parts that their reports lack.
std::string missing_in_reports(const OneSecret& one, std::uint64_t ms) {
  const std::string root = "127.0.0.1:" + std::to_string(free_port());
  std::atomic<bool> begun{false};
  const auto answers = as_threads(2, [&](Rank rank) {
    RootJoin join = at(root, rank, 2);
    if (rank == one.with_secret) join.secret = Secret::of_text("open sesame");
    while (rank != one.first && !begun.load()) sched_yield();
    const Deadline until = Deadline::after_ms(ms);
    begun.store(true);
    return gather(join, until);
  });
  std::string missing;
  for (const Rank rank : {0, 1}) {
    const std::string text = text_of(answers[static_cast<std::size_t>(rank)]);
    missing += lacks(text, "set SETO_SECRET_FILE or SETO_SECRET");
    // Rank 0 hears of the other one, or finds it.
    if (rank == 0 && lacks(text, "that claims to be rank 1 connected with").empty()) continue;
    missing +=
        lacks(text, rank == one.with_secret ? "ranks without a secret wait for this one" : "has a secret, but rank 1 has none");
  }
  return missing;
}

// One of two ranks of one machine has a secret, so they wait at different addresses. In either order of arrival both report the
// reason at their deadlines.
TEST(Root, ASecretOfOnlyOneRankIsNamedByBoth) {
  for (const OneSecret& one : {OneSecret{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    const auto attempt = [&one](std::uint64_t ms) { return problem_in_child([&] { return missing_in_reports(one, ms); }); };
    EXPECT_EQ(with_growing_time(attempt, {1'000, 5'000, 15'000}), "")
        << "with a secret: " << one.with_secret << "; first: " << one.first;
  }
}

// The secret is part of the key, so a server cannot distinguish a missing secret from another one.
TEST(Root, ByFileASecretOfOnlyOneRankIsNamedByBoth) {
  const std::string folder = temporary_folder();
  const auto attempt = [&folder](std::uint64_t ms) {
    return problem_in_child([&folder, ms] {
      const auto answers = as_threads(2, [&](Rank rank) {
        RootJoin join = at("file:" + folder + "/root", rank, 2);
        if (rank == 1) join.secret = Secret::of_text("open sesame");
        return gather(join, Deadline::after_ms(ms));
      });
      return lacks(text_of(answers[0]), "rank 1 of 2 did not join") +
             lacks(text_of(answers[0]), "that claims to be rank 1 connected with another secret") +
             lacks(text_of(answers[0]), "set SETO_SECRET_FILE or SETO_SECRET to the same secret for every rank") +
             lacks(text_of(answers[1]), "SETO_SECRET_FILE or SETO_SECRET differ");
    });
  };
  EXPECT_EQ(with_growing_time(attempt, {1'000, 5'000, 15'000}), "");
  std::filesystem::remove_all(folder);
}

TEST(Root, ByFileWhichIsRemovedWithItsJob) {
  const std::string folder = temporary_folder();
  const std::string path = folder + "/root";
  in_child([&] {
    for (int round = 0; round < 2; ++round) {
      expect_all(as_threads(3, [&](Rank rank) { return gather(numbered(round, at("file:" + path, rank, 3)), later()); }));
    }
    struct stat state {};
    EXPECT_EQ(stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777, 0600U);
    ChildProcess other([&] {
      for (const char* job : {"", "of another name"}) {
        RootJoin join = at("file:" + path, 0, 2);
        join.job = job;
        EXPECT_THAT(text_of(gather(join, later())), HasSubstr("another job that is running uses SETO_ROOT=file:"));
      }
      return true;
    });
    EXPECT_TRUE(other.wait());
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nothing stays";
  std::filesystem::remove_all(folder);
}

TEST(Root, AFileOfADeadJobIsReplaced) {
  const std::string folder = temporary_folder();
  const std::string path = folder + "/root";
  in_child([&] {
    Ghost ghost;
    const UniqueId dead{UniqueId::Serves::job, random_token(), {random_socket_name(), {ghost.address()}}};
    ASSERT_TRUE(write_root_file(path, encode(dead)).ok());
    Answer second = failure(Code::internal, "not yet");
    std::thread early([&] { second = gather(at("file:" + path, 1, 2), later()); });
    ghost.hear_and_vanish();
    const Answer first = gather(at("file:" + path, 0, 2), later());
    early.join();
    expect_all({first, second});
  });
  std::filesystem::remove_all(folder);
}

// The port of a job that has ended now belongs to another job, which uses another file.
TEST(Root, AFileOfADeadJobWhosePortIsInUseAgainIsReplaced) {
  const std::string folder = temporary_folder();
  const std::string path = folder + "/root";
  in_child([&] {
    LogCapture log;
    const testing::Place other(UniqueId::Serves::job, Listeners::Reach::network);
    const UniqueId dead{UniqueId::Serves::job, random_token(), {random_socket_name(), other.id.address.addresses}};
    ASSERT_TRUE(write_root_file(path, encode(dead)).ok());
    Answer second = failure(Code::internal, "not yet");
    std::thread early([&] { second = gather(at("file:" + path, 1, 2), later()); });
    EXPECT_TRUE(testing::comes_to_say(log, "it uses another secret than this job"));
    const Answer first = gather(at("file:" + path, 0, 2), later());
    early.join();
    expect_all({first, second});
  });
  std::filesystem::remove_all(folder);
}

TEST(Root, InvalidFilesAreRejected) {
  const std::string folder = temporary_folder();
  const std::string path = folder + "/root";
  in_child([&] {
    EXPECT_THAT(text_of(gather(at("file:" + path, 1, 2), Deadline::after_ms(50))),
                HasSubstr("rank 0 has not written SETO_ROOT=file:"));
    EXPECT_THAT(text_of(gather(at("file:" + folder + "/none/root", 0, 2), later())), HasSubstr("cannot write the root file"));
    std::ofstream(path) << "my diary";
    for (const Rank rank : {0, 1}) {
      EXPECT_THAT(text_of(gather(at("file:" + path, rank, 2), later())), HasSubstr("can be read or written by other users"));
    }
    chmod(path.c_str(), 0600);
    for (const Rank rank : {0, 1}) {
      EXPECT_THAT(text_of(gather(at("file:" + path, rank, 2), later())), HasSubstr("was not written by this library"));
    }
  });
  std::filesystem::remove_all(folder);
}

TEST(Root, ById) {
  in_child([] {
    const auto id = create_unique_id(UniqueId::Serves::job, loopback_network(), later());
    const std::string root = "id:" + hex_text(id.value());
    for (int round = 0; round < 2; ++round) {
      expect_all(as_threads(3, [&](Rank rank) { return gather(numbered(round, at(root, rank, 3)), later()); }));
    }
  });
  EXPECT_THAT(text_of(gather(at("id:12", 0, 2), later())), HasSubstr("256 hexadecimal digits"));
}

TEST(Root, InvalidRootsAreRejected) {
  for (const char* root : {"", "node1", "node1:0", ":80", "file"}) {
    EXPECT_THAT(text_of(gather(at(root, 1, 2), later())), HasSubstr("write host:port of rank 0, file:PATH or id:HEX")) << root;
  }
  RootJoin join = at("no-such-host.invalid:80", 1, 2);
  join.allow_no_secret = true;
  EXPECT_THAT(text_of(gather(join, Deadline::after_ms(3'000))), HasSubstr("'no-such-host.invalid'"));
  EXPECT_TRUE(gather(at("anything", 0, 1), later()).ok()) << "one rank needs no root";
}

}  // namespace
}  // namespace seto
