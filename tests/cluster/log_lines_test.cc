// Log lines about communicators and about operations that do not end.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

// Half of it passes before the warning, and half after it: both are longer than other programs take the processor away.
constexpr const char* kTimeoutMs = "3000";

std::vector<std::string> lines_with(const LogCapture& log, const std::string& part) {
  std::vector<std::string> lines = log.lines();
  std::erase_if(lines, [&](const std::string& line) { return line.find(part) == std::string::npos; });
  return lines;
}

SETO_TEST_ALONE(LogLines, a_collective_that_does_not_end_is_warned_of_once) {
  setenv("SETO_OPERATION_TIMEOUT_MS", kTimeoutMs, 1);
  ThreadRanks ranks(2);
  LogCapture log;
  float value = 1;
  EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, ranks[0], nullptr), setoTimeout, "never came"));
  const std::vector<std::string> late = lines_with(log, "has not ended");
  ASSERT_EQ(late.size(), 1U);
  EXPECT_NE(late[0].find("seto warn: [rank 0 "), std::string::npos) << late[0];
  EXPECT_NE(
      late[0].find("operation 1 (all_reduce of 1 float, sum) has not ended after 1.5 s: rank 1 never came; rank 0 waits for "
                   "slice 1 of 1 from rank 1 (step "),
      std::string::npos)
      << late[0];
}

SETO_TEST_ALONE(LogLines, a_receive_that_does_not_end_is_warned_of_once) {
  setenv("SETO_OPERATION_TIMEOUT_MS", kTimeoutMs, 1);
  ThreadRanks ranks(2);
  LogCapture log;
  float value = 1;
  EXPECT_TRUE(failed(setoRecv(&value, 1, setoFloat32, 1, ranks[0], nullptr), setoTimeout, "was not sent"));
  const std::vector<std::string> late = lines_with(log, "have not ended");
  ASSERT_EQ(late.size(), 1U);
  EXPECT_NE(late[0].find("sends and receives have not ended after 1.5 s: receive of 1 float from rank 1 was not sent"),
            std::string::npos)
      << late[0];
}

// A bootstrap function of the user that fails.
int refuse(const void*, void*, std::size_t, void*) { return 1; }

SETO_TEST_ALONE(LogLines, a_failed_init_is_told_once_with_its_reason) {
  setenv("SETO_LOG", "warn", 1);
  const setoUniqueId id{};
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.bootstrap.allGather = refuse;
  for (const setoSwitch_t blocking : {setoOn, setoOff}) {
    LogCapture log;
    config.blocking = blocking;
    setoComm_t comm = nullptr;
    const setoResult_t begun = setoCommInitRankConfig(&comm, 3, id, 2, &config);
    EXPECT_NE(blocking == setoOff ? settled(comm) : begun, setoSuccess);
    const std::vector<std::string> told = lines_with(log, "no communicator of 3 ranks was made: ");
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].rfind("seto warn: [rank 2 epoch 0] ", 0), 0U) << told[0];
    EXPECT_EQ(log.lines().size(), 1U);
    if (comm != nullptr) {
      EXPECT_TRUE(succeeded(setoCommAbort(comm)));
    }
  }
}

SETO_TEST_ALONE(LogLines, an_init_that_is_refused_at_once_is_told_too) {
  setenv("SETO_ALGORITHM", "nonsense", 1);
  LogCapture log;
  setoComm_t comm = nullptr;
  EXPECT_TRUE(failed(setoCommInitRank(&comm, 2, {}, 1), setoInvalidArgument, "'nonsense' is unknown; the algorithms are "));
  EXPECT_TRUE(failed(setoCommInitEnvironment(&comm, nullptr), setoInvalidArgument, "'nonsense' is unknown"));
  EXPECT_EQ(lines_with(log, "[rank 1 epoch 0] no communicator of 2 ranks was made: SETO_ALGORITHM: 'nonsense'").size(), 1U);
  EXPECT_EQ(lines_with(log, "seto warn: no communicator was made: SETO_ALGORITHM: 'nonsense'").size(), 1U);
  EXPECT_EQ(log.lines().size(), 2U);
}

SETO_TEST_ALONE(LogLines, ranks_beyond_tcp_are_not_said_to_be_of_this_host) {
  setenv("SETO_LOG", "info", 1);
  setenv("SETO_TRANSPORT", "tcp", 1);
  LogCapture log;
  const ThreadRanks ranks(3);
  const std::string expected = "0 are threads of this process, 0 other processes of this host, 2 reached over TCP; ";
  EXPECT_EQ(lines_with(log, expected).size(), 1U);
}

SETO_TEST_ALONE(LogLines, a_communicator_and_its_choices_are_told_where_asked_for) {
  setenv("SETO_LOG", "debug", 1);
  LogCapture log;
  ThreadRanks ranks(3);
  const std::vector<std::string> made =
      lines_with(log, " of 3 ranks (3 a node); of the other ranks 2 are threads of this process");
  ASSERT_EQ(made.size(), 1U);
  EXPECT_NE(made[0].find("Seto " + std::to_string(SETO_MAJOR) + "."), std::string::npos) << made[0];
  EXPECT_NE(made[0].find(" constants: node "), std::string::npos) << made[0];
  ranks.each([](setoComm_t comm, int) {
    std::vector<float> values(5, 1);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(succeeded(setoAllReduce(values.data(), values.data(), 5, setoFloat32, setoSum, comm, nullptr)));
  });
  EXPECT_EQ(lines_with(log, "all_reduce of 5 float, sum runs as ").size(), 3U) << "once for each rank";
  EXPECT_TRUE(lines_with(log, "not ended").empty());
}

}  // namespace
}  // namespace seto::testing
