// seto status: what a running job tells of its ranks and of the links between its sites.

#if __has_include(<nlohmann/json.hpp>)

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cluster/programs.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kTries = 300;
constexpr int kBetweenTriesMs = 100;

// Until the test signals, so that the communicator stays.
void wait_for_signal(const Seat& seat, std::uint64_t signal) {
  while (seat.board.signal.load() < signal) (void)poll(nullptr, 0, 1);
}

// A job of two nodes, each with a rank and a site of its own. Both ranks make one sum and wait for the first signal. Then the
// body runs in each.
Job::Body two_sites(const std::function<void(const Seat&, setoComm_t)>& body) {
  return [body](const Seat& seat) {
    const std::string host = "status " + std::to_string(seat.rank);
    setoConfig_t config = config_of_test();
    config.hostId = host.c_str();
    config.siteId = seat.rank == 0 ? "east" : "west";
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    std::vector<int> values(100'000, 1);
    const Answer done = answer(setoAllReduce(values.data(), values.data(), values.size(), setoInt32, setoSum, comm, nullptr));
    EXPECT_EQ(done.code, setoSuccess) << done;
    seat.board.counter[static_cast<std::size_t>(seat.rank)] = 1;
    wait_for_signal(seat, 1);
    body(seat, comm);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  };
}

// The process of a rank, as `seto status` tells of it.
Json process_of(const Job& job, int rank) {
  const Ended asked = seto("status --json --pid " + std::to_string(job.pid(rank)));
  const Json json = Json::parse(asked.text, nullptr, false);
  if (asked.status != 0 || json.is_discarded() || json.at("processes").size() != 1) {
    ADD_FAILURE() << asked.status << ": " << asked.text;
    return {};
  }
  return json.at("processes").at(0);
}

// The only communicator of a rank, once it is as the test expects.
Json communicator_of(const Job& job, int rank, const std::function<bool(const Json&)>& expected) {
  Json last;
  for (int i = 0; i < kTries && !::testing::Test::HasFailure(); ++i) {
    last = process_of(job, rank);
    if (last.contains("communicators") && last["communicators"].size() == 1 && expected(last["communicators"][0]))
      return last["communicators"][0];
    (void)poll(nullptr, 0, kBetweenTriesMs);
  }
  ADD_FAILURE() << last.dump(1);
  return {};
}

bool always(const Json&) { return true; }

// A busy machine may have been silent for a while.
bool is_open(const Json& communicator) { return communicator.at("links").at(0).at("state") == "open"; }

TEST(StatusCommand, NamesRanksSitesAndLinksWithTheirBytesAndCipher) {
  setenv("SETO_TLS", "always", 1);  // both ranks are on this host, so it would be off between them
  Job job(Kind::processes, 2, two_sites([](const Seat&, setoComm_t) {}));
  std::vector<std::string> ids;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(job.reached(rank, 1));
    const Json communicator = communicator_of(job, rank, is_open);
    ASSERT_FALSE(communicator.is_null());
    ids.push_back(communicator.at("communicator"));
    EXPECT_EQ(communicator.at("rank"), rank);
    EXPECT_EQ(communicator.at("ranks"), 2);
    EXPECT_EQ(communicator.at("state"), "usable");
    EXPECT_EQ(communicator.at("operations").at("done"), 1);
    EXPECT_FALSE(communicator.contains("call")) << communicator.at("call");
    const Json& sites = communicator.at("sites");
    EXPECT_EQ(sites.at(0), (Json{{"name", "east"}, {"ranks", "0"}, {"count", 1}}));
    EXPECT_EQ(sites.at(1), (Json{{"name", "west"}, {"ranks", "1"}, {"count", 1}}));
    ASSERT_EQ(communicator.at("links").size(), 1U);
    const Json& link = communicator.at("links").at(0);
    EXPECT_EQ(link.at("peer"), 1 - rank);
    EXPECT_EQ(link.at("site"), 1 - rank);
    EXPECT_THAT(link.at("way").get<std::string>(), AllOf(HasSubstr("TCP "), HasSubstr(" -> ")));
    EXPECT_THAT(link.at("cipher").get<std::string>(), HasSubstr("TLS_"));
    EXPECT_GE(link.at("sockets"), 1);
    EXPECT_GT(link.at("bytes_sent"), 100'000U) << "half of the sum crosses the link at least";
    EXPECT_GT(link.at("bytes_received"), 100'000U);
    EXPECT_GT(link.at("tcp_bytes_sent"), 100'000U);
    EXPECT_GT(link.at("round_trip_us"), 0U);
    EXPECT_GE(link.at("round_trip_us"), link.at("shortest_round_trip_us"));
  }
  unsetenv("SETO_TLS");
  EXPECT_EQ(ids[0], ids[1]);
  const Ended text = seto("status --pid " + std::to_string(job.pid(0)));
  EXPECT_EQ(text.status, 0) << text.text;
  EXPECT_THAT(text.text, AllOf(HasSubstr("2 ranks at 2 sites, east (rank 0); west (rank 1)"), HasSubstr("  west  ")));
  job.board().signal = 1;
  job.finish();
}

TEST(StatusCommand, TellsOfAStuckOperationWhileItIsStuck) {
  Job job(Kind::processes, 2, two_sites([](const Seat& seat, setoComm_t comm) {
            if (seat.rank == 1) wait_for_signal(seat, 2);
            int value = 1;
            const Answer done = answer(setoAllReduce(&value, &value, 1, setoInt32, setoSum, comm, nullptr));
            EXPECT_EQ(done.code, setoSuccess) << done;
            seat.meet(1);
          }));
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(job.reached(rank, 1));
  job.board().signal = 1;
  const Json stuck = communicator_of(job, 0, [](const Json& json) { return json.contains("call"); });
  ASSERT_FALSE(stuck.is_null());
  EXPECT_THAT(stuck.at("call").at("text").get<std::string>(), HasSubstr("all_reduce of 1 int32"));
  EXPECT_EQ(stuck.at("call").at("operation"), 2);
  EXPECT_FALSE(communicator_of(job, 1, always).contains("call"));
  job.board().signal = 2;
  job.finish();
}

TEST(StatusCommand, ASilentPeerIsTold) {
  setenv("SETO_HEARTBEAT_MS", "100", 1);
  setenv("SETO_LIVENESS_TIMEOUT_MS", "60000", 1);
  Job job(Kind::processes, 2, two_sites([](const Seat& seat, setoComm_t) { seat.meet(1); }));
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(job.reached(rank, 1));
  ASSERT_EQ(::kill(job.pid(1), SIGSTOP), 0);
  const Json silent = communicator_of(job, 0, [](const Json& json) { return json.at("links").at(0).at("state") == "silent"; });
  ASSERT_FALSE(silent.is_null());
  EXPECT_GT(silent.at("links").at(0).at("silent_ms"), 300U);
  const Ended hung = seto("status --pid " + std::to_string(job.pid(1)));
  EXPECT_EQ(hung.status, 0) << "it was found: " << hung.text;
  EXPECT_THAT(hung.text, HasSubstr("it does not answer"));
  ASSERT_EQ(::kill(job.pid(1), SIGCONT), 0);
  job.board().signal = 1;
  job.finish();
  unsetenv("SETO_HEARTBEAT_MS");
  unsetenv("SETO_LIVENESS_TIMEOUT_MS");
}

TEST(StatusCommand, AProcessThatIsNotOfSetoIsASentenceAndAFailure) {
  const Ended none = seto("status --pid 1");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.text, HasSubstr("seto: process 1 has no communicator of Seto, or is of another user\n"));
  EXPECT_EQ(seto("status --pid 0").status, 2);
  EXPECT_EQ(seto("status --watch -1").status, 2);
}

}  // namespace
}  // namespace seto::testing

#endif
