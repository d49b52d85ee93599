// Dumps come from any host and any version, and may be forged: what is required of them, and what is made of the rest.

#include "src/report/dump_parser.h"

#if __has_include(<nlohmann/json.hpp>)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace seto {
namespace {

using Json = nlohmann::json;
using ::testing::StartsWith;

Json smallest() { return Json::parse(R"({"seto_dump":1,"rank":1,"ranks":2,"peers":[{},{}],"recorder":{"calls":[]}})"); }

std::string refusal(const std::string& text) {
  const Result<ReadDump> dump = read_dump("a.json", text);
  if (dump.ok()) return "accepted";
  EXPECT_EQ(dump.status().code(), Code::invalid_argument);
  return std::string(dump.status().text());
}

ReadDump read(const Json& json) {
  Result<ReadDump> dump = read_dump("a.json", json.dump());
  EXPECT_TRUE(dump.ok()) << dump.status().text();
  return dump.ok() ? std::move(dump).value() : ReadDump{};
}

TEST(DumpParser, NeedsFiveKeysAndNamesTheOneThatIsMissing) {
  EXPECT_EQ(refusal(smallest().dump()), "accepted");
  const std::pair<const char*, const char*> texts[] = {
      {"seto_dump", "a.json: not a dump of Seto: it has no \"seto_dump\""},
      {"rank", "a.json: \"rank\" or \"ranks\" is invalid"},
      {"ranks", "a.json: \"rank\" or \"ranks\" is invalid"},
      {"peers", "a.json: it does not have 2 \"peers\""},
      {"recorder", "a.json: its recorder has no \"calls\""},
  };
  for (const auto& [key, text] : texts) {
    Json json = smallest();
    json.erase(key);
    EXPECT_EQ(refusal(json.dump()), text);
    json[key] = "text";
    EXPECT_EQ(refusal(json.dump()), text) << "of another type";
  }
}

TEST(DumpParser, SaysHowMuchThereIsOfATextThatIsNotJson) {
  const std::string whole = smallest().dump();
  EXPECT_EQ(refusal(""), "a.json: not JSON, or truncated (0 bytes)");
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_EQ(refusal(whole.substr(0, size)), "a.json: not JSON, or truncated (" + std::to_string(size) + " bytes)");
  EXPECT_THAT(refusal(whole + "}"), StartsWith("a.json: not JSON"));
  for (const char* other : {"[]", "1", "null", "\"seto_dump\"", "[{\"seto_dump\":1}]"})
    EXPECT_THAT(refusal(other), StartsWith("a.json: not a dump of Seto")) << other;
}

TEST(DumpParser, ReadsNoOtherSchema) {
  for (const std::uint64_t schema : {std::uint64_t{2}, ~std::uint64_t{0}}) {
    Json json = smallest();
    json["seto_dump"] = schema;
    EXPECT_EQ(refusal(json.dump()),
              "a.json: schema " + std::to_string(schema) + ", but this version reads 1: use the library that wrote it");
  }
}

TEST(DumpParser, AcceptsRanksThatExistOnly) {
  for (const std::uint64_t rank : {std::uint64_t{2}, std::uint64_t{65'536}, ~std::uint64_t{0}}) {
    Json json = smallest();
    json["rank"] = rank;
    EXPECT_EQ(refusal(json.dump()), "a.json: \"rank\" or \"ranks\" is invalid") << rank;
  }
  for (const std::uint64_t ranks : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65'537}, std::uint64_t{1} << 32}) {
    Json json = smallest();
    json["ranks"] = ranks;
    EXPECT_EQ(refusal(json.dump()), "a.json: \"rank\" or \"ranks\" is invalid") << ranks;
  }
  Json negative = smallest();
  negative["rank"] = -1;
  EXPECT_EQ(refusal(negative.dump()), "a.json: \"rank\" or \"ranks\" is invalid");
}

TEST(DumpParser, NeedsOnePeerForEachRank) {
  for (const std::size_t peers : {0U, 1U, 3U}) {
    Json json = smallest();
    json["peers"] = Json::array();
    for (std::size_t peer = 0; peer < peers; ++peer) json["peers"].push_back(Json::object());
    EXPECT_EQ(refusal(json.dump()), "a.json: it does not have 2 \"peers\"");
  }
}

TEST(DumpParser, ReadsWhatIsMissingAsEmpty) {
  const ReadDump dump = read(smallest());
  EXPECT_EQ(dump.source, "a.json");
  EXPECT_EQ(dump.rank, 1);
  EXPECT_EQ(dump.ranks, 2);
  EXPECT_FALSE(dump.failed);
  EXPECT_EQ(dump.blamed, -1);
  EXPECT_EQ(dump.issued + dump.begun + dump.done + dump.time_us + dump.pid, 0U);
  for (const ReadPeer& peer : dump.peers) {
    EXPECT_EQ(peer.state, "");
    EXPECT_EQ(peer.blames, -1);
    EXPECT_EQ(peer.noted, 0U);
  }
}

TEST(DumpParser, ReadsEveryKey) {
  Json json = smallest();
  json["host"] = "tokyo";
  json["pid"] = 17;
  json["time_us"] = 18;
  json["name"] = "gradients";
  json["attempt"] = "0xabc";
  json["state"] = "failed";
  json["failure"] = "too late";
  json["failure_code"] = "timeout";
  json["failed_at_us"] = 16;
  json["culprit"] = 0;
  json["operations"] = {{"issued", 9}, {"begun", 8}, {"done", 7}};
  json["peers"][0] = {{"state", "dead"},           {"done", 5},    {"blames", 1},
                      {"place", "tokyo:17"},       {"way", "TCP"}, {"why", "it ended"},
                      {"note", {{"operation", 6}}}};
  const ReadDump dump = read(json);
  EXPECT_EQ(dump.host, "tokyo");
  EXPECT_EQ(dump.pid, 17U);
  EXPECT_EQ(dump.time_us, 18U);
  EXPECT_EQ(dump.name, "gradients");
  EXPECT_EQ(dump.attempt, "0xabc");
  EXPECT_TRUE(dump.failed);
  EXPECT_EQ(dump.failure, "too late");
  EXPECT_EQ(dump.failure_code, "timeout");
  EXPECT_EQ(dump.failed_at_us, 16U);
  EXPECT_EQ(dump.blamed, 0);
  EXPECT_EQ(dump.issued, 9U);
  EXPECT_EQ(dump.begun, 8U);
  EXPECT_EQ(dump.done, 7U);
  const ReadPeer& peer = dump.peers.front();
  EXPECT_EQ(peer.state, "dead");
  EXPECT_EQ(peer.done, 5U);
  EXPECT_EQ(peer.noted, 6U);
  EXPECT_EQ(peer.blames, 1);
  EXPECT_EQ(peer.place, "tokyo:17");
  EXPECT_EQ(peer.way, "TCP");
  EXPECT_EQ(peer.why, "it ended");
}

TEST(DumpParser, KeepsNoRankBeyondTheRanks) {
  Json json = smallest();
  json["culprit"] = 2;
  json["peers"][0]["blames"] = 65'535;
  json["recorder"]["calls"] = {{{"sequence", 1}, {"state", "begun"}, {"waits", {{"peer", 2}, {"text", "waits"}}}},
                               {{"sequence", 2}, {"state", "begun"}, {"waits", {{"peer", 1}, {"text", "waits"}}}}};
  const ReadDump dump = read(json);
  EXPECT_EQ(dump.blamed, -1);
  EXPECT_EQ(dump.peers.front().blames, -1);
  EXPECT_EQ(dump.calls.at(0).wait->peer, -1);
  EXPECT_EQ(dump.calls.at(1).wait->peer, 1);
}

TEST(DumpParser, PutsCallsInTheOrderOfTheirSequence) {
  Json json = smallest();
  json["recorder"]["calls"] = Json::array();
  std::vector<std::uint64_t> sequence = {5, 1, 4, 2, 3};
  for (const std::uint64_t number : sequence) json["recorder"]["calls"].push_back({{"sequence", number}});
  const ReadDump dump = read(json);
  for (std::size_t call = 0; call < 5; ++call) EXPECT_EQ(dump.calls.at(call).sequence, call + 1);
}

TEST(DumpParser, TakesACallThatIsNoObjectForAnEmptyOne) {
  Json json = smallest();
  json["recorder"]["calls"] = {1, "x", nullptr, Json::array()};
  const ReadDump dump = read(json);
  ASSERT_EQ(dump.calls.size(), 4U);
  for (const ReadCall& call : dump.calls) {
    EXPECT_EQ(call.what, "");
    EXPECT_FALSE(call.wait.has_value());
    EXPECT_FALSE(call.waits());
  }
}

TEST(ReadCall, WaitsFromItsBeginningOrElseFromItsIssue) {
  ReadCall call;
  call.issued_us = 5;
  EXPECT_EQ(call.since_us(), 5U);
  call.begun_us = 7;
  EXPECT_EQ(call.since_us(), 7U);
  for (const auto& [state, waits] :
       {std::pair{"begun", true}, {"failed", true}, {"issued", false}, {"ended", false}, {"", false}}) {
    call.state = state;
    EXPECT_EQ(call.waits(), waits) << state;
  }
}

// Any bytes give a dump without control characters, or a text that begins with the source.
TEST(DumpParser, SurvivesChangedBytes) {
  Json json = smallest();
  json["name"] = "gradients";
  json["recorder"]["calls"] = {{{"sequence", 1}, {"text", "all_reduce"}, {"state", "begun"}, {"waits", {{"peer", 0}}}}};
  const std::string good = json.dump();
  std::mt19937_64 random(testing::chosen_seed());
  int accepted = 0;
  for (int round = 0; round < 10'000; ++round) {  // one of twenty is accepted
    std::string bytes = good;
    for (std::uint64_t change = 1 + random() % 3; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<ReadDump> dump = read_dump("a.json", bytes);
    if (!dump.ok()) {
      EXPECT_THAT(std::string(dump.status().text()), StartsWith("a.json: "));
      continue;
    }
    ++accepted;
    EXPECT_LT(dump.value().rank, dump.value().ranks);
    EXPECT_EQ(dump.value().peers.size(), static_cast<std::size_t>(dump.value().ranks));
    for (const char letter : dump.value().name) EXPECT_TRUE(static_cast<unsigned char>(letter) >= ' ' && letter != 0x7f);
  }
  EXPECT_GT(accepted, 100) << "else the changes test only the JSON parser";
}

}  // namespace
}  // namespace seto

#endif
