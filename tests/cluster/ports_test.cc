// SETO_PORTS with too few ports: a rank learns that before it waits for the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "src/net/tcp_socket.h"
#include "tests/cluster/thread_ranks.h"
#include "tests/support/child_process.h"

namespace seto::testing {
namespace {

using Variables = std::map<std::string, std::string>;

// One rank in a process of its own, with the variables of torchrun.
ChildProcess rank_process(int rank, int ranks, const Variables& variables, const std::function<void()>& body) {
  return ChildProcess([=] {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", "1", 1);
    setenv("TORCHELASTIC_RUN_ID", (std::to_string(getppid()) + " ports").c_str(), 1);
    setenv("SETO_INIT_TIMEOUT_MS", "20000", 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    body();
    return exit_like_a_program(true);
  });
}

// The only port of a range, with a listener.
struct TakenPort {
  TcpListener listener = listen_tcp({any_address(AddressFamily::ipv6)}, {}, 1).value();
  std::string text = std::to_string(listener.addresses.front().port) + "-" + std::to_string(listener.addresses.front().port);
};

// No other rank ever comes: a rank that waited would say that.
TEST(Ports, ThatAreAllTakenAreToldBeforeTheWait) {
  const TakenPort taken;
  const Variables variables = {{"SETO_PORTS", taken.text},
                               {"SETO_TRANSPORT", "tcp"},
                               {"SETO_ROOT", "file:" + ::testing::TempDir() + "seto_no_root"},
                               {"SETO_RANK", "1"},
                               {"SETO_RANKS", "2"}};
  ChildProcess rank = rank_process(1, 2, variables, [&] {
    setoComm_t comm = nullptr;
    EXPECT_TRUE(failed(setoCommInitEnvironment(&comm, nullptr), setoSystemError, "SETO_PORTS=" + taken.text));
    EXPECT_THAT(setoGetLastError(nullptr), ::testing::HasSubstr("is taken"));
    EXPECT_THAT(setoGetLastError(nullptr), ::testing::HasSubstr("each process of this host listens on one port of the range"));
  });
  EXPECT_TRUE(rank.wait());
}

TEST(Ports, AreNotBlamedForAnotherSettingOfTheNetwork) {
  const Variables variables = {{"SETO_PORTS", "20000-20999"}, {"SETO_TRANSPORT", "tcp"}, {"SETO_PATHS", "none0"}};
  const auto body = [] {
    setoComm_t comm = nullptr;
    // The rank that comes to it first tells the other one.
    EXPECT_THAT(setoCommInitEnvironment(&comm, nullptr), ::testing::AnyOf(setoInvalidArgument, setoRemoteError));
    EXPECT_THAT(setoGetLastError(nullptr), ::testing::AllOf(::testing::HasSubstr("SETO_PATHS: 'none0' has no address"),
                                                            ::testing::Not(::testing::HasSubstr("SETO_PORTS"))));
  };
  ChildProcess first = rank_process(0, 2, variables, body);
  ChildProcess second = rank_process(1, 2, variables, body);
  EXPECT_TRUE(first.wait());
  EXPECT_TRUE(second.wait());
}

TEST(Ports, ThatAreFewerThanTheProcessesAreTold) {
  const Variables variables = {{"SETO_PORTS", "20000-20002"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "192.0.2.1"},
                               {"SETO_ALLOW_NO_SECRET", "1"}};
  ChildProcess rank = rank_process(5, 8, variables, [] {
    setoComm_t comm = nullptr;
    EXPECT_TRUE(failed(setoCommInitEnvironment(&comm, nullptr), setoInvalidArgument,
                       "SETO_PORTS=20000-20002 has 3 ports, but this host runs 4 processes of the job"));
    EXPECT_THAT(setoGetLastError(nullptr), ::testing::HasSubstr("give a range of at least 5 ports"));
  });
  EXPECT_TRUE(rank.wait());
}

TEST(Ports, AreNotNeededOnOneNode) {
  const TakenPort taken;
  const auto body = [] {
    setoComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitEnvironment(&comm, nullptr)));
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  };
  const Variables variables = {{"SETO_PORTS", taken.text}, {"SETO_TRANSPORT", "auto"}};
  ChildProcess first = rank_process(0, 2, variables, body);
  ChildProcess second = rank_process(1, 2, variables, body);
  EXPECT_TRUE(first.wait());
  EXPECT_TRUE(second.wait());
}

}  // namespace
}  // namespace seto::testing
