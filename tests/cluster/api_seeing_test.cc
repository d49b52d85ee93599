#include <cstring>
#include <string>

#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

std::string info(const char* topic, setoFormat_t format) {
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoInfo(topic, format, nullptr, 0, &size)));
  std::string text(size + 1, '?');
  EXPECT_TRUE(succeeded(setoInfo(topic, format, text.data(), text.size(), nullptr)));
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

SETO_TEST_ALONE(ApiSeeing, versions_agree) {
  int version = 0;
  ASSERT_TRUE(succeeded(setoGetVersion(&version)));
  EXPECT_EQ(version, SETO_VERSION_CODE);
  EXPECT_EQ(info("version", setoFormatText), "seto  0.1.0\n");
}

SETO_TEST_ALONE(ApiSeeing, every_topic_in_both_formats) {
  for (const char* topic : {"version", "build", "machine", "gpus", "config", "constants", "calibration", "transports",
                            "algorithms", "codecs", "status"}) {
    EXPECT_FALSE(info(topic, setoFormatText).empty());
    const std::string json = info(topic, setoFormatJson);
    EXPECT_EQ(json.substr(0, json.find(':')), "{\"" + std::string(topic) + "\"");
  }
  EXPECT_NE(info(nullptr, setoFormatText).find("SETO_OPERATION_TIMEOUT_MS"), std::string::npos);
  EXPECT_TRUE(failed(setoInfo("weather", setoFormatText, nullptr, 0, nullptr), setoInvalidArgument, "'weather'"));
  EXPECT_TRUE(failed(setoInfo(nullptr, none_of<setoFormat_t>(9), nullptr, 0, nullptr), setoInvalidArgument, "format: 9"));
  EXPECT_TRUE(failed(setoInfo(nullptr, setoFormatText, nullptr, 5, nullptr), setoInvalidArgument, "text"));
}

SETO_TEST_ALONE(ApiSeeing, what_works_is_not_said_to_come) {
  const std::string status = info("status", setoFormatJson);
  for (const char* row : {R"("several machines":{"value":"works")", R"("heartbeats":{"value":"works")"})
    EXPECT_NE(status.find(row), std::string::npos) << status;
  EXPECT_NE(info("transports", setoFormatJson).find(R"("tcp":{"value":"yes")"), std::string::npos);
}

SETO_TEST_ALONE(ApiSeeing, a_text_that_is_cut_ends_with_zero) {
  char text[6] = "?????";
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoInfo("version", setoFormatText, text, 5, &size)));
  EXPECT_STREQ(text, "seto");
  EXPECT_EQ(size, std::strlen("seto  0.1.0\n"));
}

SETO_TEST_ALONE(ApiSeeing, explain_marks_one_choice) {
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  question.collective = "all_reduce";
  question.bytes = 64 << 20;
  question.ranks = 4;
  std::string text(4096, '\0');
  ASSERT_TRUE(succeeded(setoExplain(&question, setoFormatText, text.data(), text.size(), nullptr)));
  EXPECT_NE(text.find("chosen"), std::string::npos);
  EXPECT_NE(text.find("there is one tier"), std::string::npos);
  question.nodes = 3;
  EXPECT_TRUE(failed(setoExplain(&question, setoFormatText, nullptr, 0, nullptr), setoInvalidArgument, "nodes"));
  question.nodes = 2;
  question.collective = "all_redcue";
  EXPECT_TRUE(failed(setoExplain(&question, setoFormatText, nullptr, 0, nullptr), setoInvalidArgument, "'all_redcue'"));
}

SETO_TEST_ALONE(ApiSeeing, a_communicator_answers_for_itself) {
  ThreadRanks ranks(2);
  std::string text(4096, '\0');
  ASSERT_TRUE(succeeded(setoCommDump(ranks[1], setoFormatText, text.data(), text.size(), nullptr)));
  EXPECT_NE(text.find("usable"), std::string::npos);
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  question.collective = "barrier";
  question.comm = ranks[0];
  question.ranks = 1000;  // ignored
  ASSERT_TRUE(succeeded(setoExplain(&question, setoFormatText, text.data(), text.size(), nullptr)));
  EXPECT_NE(text.find("2 ranks"), std::string::npos);
}

SETO_TEST_ALONE(ApiSeeing, names_have_ids) {
  int id = 0;
  EXPECT_TRUE(succeeded(setoCodecId("none", &id)));
  EXPECT_GT(id, 0);
  EXPECT_TRUE(failed(setoCodecId("zip", &id), setoInvalidArgument, "the names are none"));
  EXPECT_TRUE(failed(setoAlgorithmId("rong", &id), setoInvalidArgument, "ring"));
}

SETO_TEST_ALONE(ApiSeeing, every_result_has_a_text) {
  for (int code = 0; code < setoNumResults; ++code)
    EXPECT_STRNE(setoGetErrorString(static_cast<setoResult_t>(code)), "unknown result code");
  EXPECT_STREQ(setoGetErrorString(none_of<setoResult_t>(-3)), "unknown result code");
  EXPECT_STREQ(setoGetErrorString(none_of<setoResult_t>(99)), "unknown result code");
}

SETO_TEST_ALONE(ApiMemory, is_aligned_zeroed_and_freed_once) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, std::size_t{3} << 20}) {
    void* memory = nullptr;
    ASSERT_TRUE(succeeded(setoMemAlloc(&memory, size)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (size >= (2U << 20) ? 2U << 20 : 4096), 0U);
    static_cast<char*>(memory)[size - 1] = 1;
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
    EXPECT_TRUE(failed(setoMemFree(memory), setoInvalidArgument, "setoMemAlloc"));
  }
  void* memory = &memory;
  EXPECT_TRUE(succeeded(setoMemAlloc(&memory, 0)));
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(setoMemAlloc(&memory, ~std::size_t{0}), setoInvalidArgument);
}

}  // namespace
}  // namespace seto::testing
