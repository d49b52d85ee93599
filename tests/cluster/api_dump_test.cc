// setoCommDump returns valid JSON, and its figures change as the communicator works.

#if __has_include(<nlohmann/json.hpp>)

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

using Json = nlohmann::json;

std::string text_of(setoComm_t comm, setoFormat_t format) {
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoCommDump(comm, format, nullptr, 0, &size)));
  std::string text(size + 512, '\0');  // the text may have grown meanwhile
  EXPECT_TRUE(succeeded(setoCommDump(comm, format, text.data(), text.size(), &size)));
  text.resize(size);
  return text;
}

Json dump_of(setoComm_t comm) {
  const std::string text = text_of(comm, setoFormatJson);
  Json json = Json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

void all_reduce(setoComm_t comm, std::size_t count) {
  std::vector<float> values(count, 1.0F);
  EXPECT_TRUE(succeeded(setoAllReduce(values.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr)));
}

SETO_TEST_ALONE(ApiDump, figures_move) {
  ThreadRanks ranks(3);
  const Json before = dump_of(ranks[1]);
  EXPECT_EQ(before.at("rank"), 1);
  EXPECT_EQ(before.at("ranks"), 3);
  EXPECT_EQ(before.at("state"), "usable");
  EXPECT_EQ(before.at("operations").at("issued"), 0);
  EXPECT_EQ(before.at("peers").size(), 3U);
  EXPECT_FALSE(before.at("peers").at(0).contains("note"));
  EXPECT_EQ(before.at("recorder").at("recorded"), 0) << "measurements of the init are not calls of the user";
  ranks.each([](setoComm_t comm, int) {
    for (int i = 0; i < 20; ++i) all_reduce(comm, 8);
    all_reduce(comm, 1 << 20);
  });
  const Json after = dump_of(ranks[1]);
  EXPECT_EQ(after.at("operations").at("issued"), 21);
  EXPECT_EQ(after.at("operations").at("begun"), 21);
  EXPECT_EQ(after.at("operations").at("done"), 21);
  EXPECT_GT(after.at("leased_bytes"), before.at("leased_bytes"));
  EXPECT_GE(after.at("used_bytes"), after.at("leased_bytes"));
  for (const Json& peer : after.at("peers")) {
    EXPECT_EQ(peer.at("state"), peer.at("rank") == 1 ? "this rank" : "alive");
    EXPECT_EQ(peer.at("done"), 21);
    EXPECT_EQ(peer.at("note").at("operation"), 21);
    EXPECT_NE(peer.at("note").at("text").get<std::string>().find("all_reduce of 1048576 float"), std::string::npos) << peer;
  }
}

SETO_TEST_ALONE(ApiDump, shows_what_callers_say_of_a_call) {
  ThreadRanks ranks(2);
  ranks.each([](setoComm_t comm, int rank) {
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    config.label = "layer \"3\"";
    config.tag = 41;
    std::vector<float> values(8, 1.0F);
    EXPECT_TRUE(succeeded(setoAllReduceConfig(values.data(), values.data(), 8, setoFloat32, setoSum, comm, nullptr, &config)));
    config.tag = 42;
    EXPECT_TRUE(succeeded(rank == 0 ? setoSendConfig(values.data(), 8, setoFloat32, 1, comm, nullptr, &config)
                                    : setoRecvConfig(values.data(), 8, setoFloat32, 0, comm, nullptr, &config)));
    all_reduce(comm, 8);
  });
  const Json calls = dump_of(ranks[1]).at("recorder").at("calls");
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.at(0).at("label"), "layer \"3\"");
  EXPECT_EQ(calls.at(0).at("tag"), 41);
  EXPECT_EQ(calls.at(1).at("what"), "receive");
  EXPECT_EQ(calls.at(1).at("tag"), 42);
  EXPECT_FALSE(calls.at(2).contains("label"));
  EXPECT_NE(text_of(ranks[0], setoFormatText).find(", the caller's layer \"3\", tag 41"), std::string::npos);
}

SETO_TEST_ALONE(ApiDump, shows_a_receive_from_any_rank_once) {
  ThreadRanks ranks(2);
  ranks.each([](setoComm_t comm, int rank) {
    std::vector<float> values(100'000, 1.0F);
    int source = -1;
    EXPECT_TRUE(succeeded(rank == 0 ? setoRecvAny(values.data(), values.size(), setoFloat32, &source, comm, nullptr)
                                    : setoSend(values.data(), values.size(), setoFloat32, 0, comm, nullptr)));
  });
  const Json calls = dump_of(ranks[0]).at("recorder").at("calls");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls.at(0).at("text"), "receive of 100000 float from any rank");
  EXPECT_EQ(calls.at(0).at("state"), "ended");
}

// The only call waits, and its time of issue stays. The clock of the dump and that of the record may differ a little.
void expect_one_time_of_issue(setoComm_t comm, Deadline until) {
  const auto time_in = [](const Json& dump, const char* key) { return dump.at(key).get<std::int64_t>(); };
  const auto issued_in = [&](const Json& dump) { return time_in(dump.at("recorder").at("calls").at(0), "issued_us"); };
  const Json first = dump_of(comm);
  Json later;
  do {
    later = dump_of(comm);
  } while (time_in(later, "time_us") < time_in(first, "time_us") + 20'000 && !until.passed());
  EXPECT_LE(issued_in(later), issued_in(first) + 10'000);
}

// A call hangs; the dump must show which rank has not called.
SETO_TEST_ALONE(ApiDump, shows_waiting_ranks_and_missing_ranks) {
  ThreadRanks ranks(2);
  std::thread waiting([&] { all_reduce(ranks[0], 77); });
  const Deadline until = Deadline::after_ms(20'000);
  Json seen;
  do {
    seen = dump_of(ranks[0]);
  } while (seen.at("operations").at("begun") == 0 && !until.passed());
  EXPECT_EQ(seen.at("operations").at("issued"), 1);
  EXPECT_EQ(seen.at("operations").at("done"), 0);
  EXPECT_EQ(dump_of(ranks[1]).at("peers").at(0).at("note").at("operation"), 1) << "as seen by the missing rank";
  expect_one_time_of_issue(ranks[0], until);
  EXPECT_FALSE(seen.at("peers").at(1).contains("note"));
  all_reduce(ranks[1], 77);
  waiting.join();
}

SETO_TEST_ALONE(ApiDump, keeps_the_first_failure_and_names_who_left) {
  ThreadRanks ranks(3);
  ranks.each([](setoComm_t comm, int) { all_reduce(comm, 5); });
  EXPECT_TRUE(succeeded(setoCommAbort(ranks[2])));
  ranks[2] = nullptr;
  float value = 1;
  EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, ranks[0], nullptr), setoRemoteError, "rank 2"));
  const Json json = dump_of(ranks[0]);
  EXPECT_EQ(json.at("state"), "failed");
  EXPECT_NE(json.at("failure").get<std::string>().find("rank 2"), std::string::npos);
  EXPECT_EQ(json.at("peers").at(2).at("state"), "left");
  EXPECT_EQ(json.at("peers").at(1).at("state"), "alive");
  const std::string text = text_of(ranks[0], setoFormatText);
  EXPECT_NE(text.find("failed"), std::string::npos) << text;
  EXPECT_NE(text.find("): left, 1 done"), std::string::npos) << text;
}

SETO_TEST_ALONE(ApiDump, shows_names_and_pins) {
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.commName = "a \"name\"\n";
  config.algorithm = "ring";
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(setoCommInitRankConfig(&comm, 1, setoUniqueId{}, 0, &config)));
  const Json json = dump_of(comm);
  EXPECT_EQ(json.at("name"), "a \"name\"\n");
  EXPECT_EQ(json.at("algorithm"), "ring");
  EXPECT_GE(json.at("tiers"), 0);
  EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

}  // namespace
}  // namespace seto::testing

#endif
