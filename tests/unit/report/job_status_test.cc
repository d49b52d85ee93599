#if __has_include(<nlohmann/json.hpp>)

#include "src/report/status/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/control/local/status_query.h"

namespace seto {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// An answer as a process wrote it, with these counters.
std::string recorded(std::uint64_t time_us, std::uint64_t sent, const std::string& state = R"("open")") {
  return R"({"seto_status":1,"pid":4711,"host":"tokyo-3","program":"train","time_us":)" + std::to_string(time_us) +
         R"(,"communicators":[{"communicator":"00000000000000ab","name":"world","rank":1,"ranks":3,"state":"usable",)"
         R"("operations":{"issued":17,"begun":17,"done":16},"call":{"text":"all_reduce of 8 float32, sum","operation":17,)"
         R"("state":"begun","for_us":12300000},"codec":{"setting":"auto","latest":"fp16","ratio":2},"site":0,)"
         R"("sites":[{"name":"tokyo","ranks":"0-1","count":2},{"name":"osaka","ranks":"2","count":1}],"links":[)"
         R"({"peer":2,"place":"osaka-1:99","site":1,"way":"TCP 10.0.0.1 -> 10.1.0.1","state":)" +
         state + R"(,"cipher":"TLS_AES_128_GCM_SHA256","bytes_sent":)" + std::to_string(sent) +
         R"(,"bytes_received":1500,"bytes_per_second":112000000,"sockets":8,"round_trip_us":31200,"shortest_round_trip_us":30100,)"
         R"("tcp_bytes_sent":1000000,"tcp_bytes_resent":200}],"links_left_out":0}],"communicators_left_out":0})";
}

std::string collected(const std::string& answer) {
  return collect_status(std::vector<StatusAnswer>{{4711, answer, {}}}, "tokyo-3", 5).value();
}

std::string text_of(const std::string& now, const std::string& before = {}) {
  return report_status(now, before, ReportFormat::text).value();
}

TEST(JobStatus, ShowsEachLinkBetweenSitesWithItsFigures) {
  const std::string text = text_of(collected(recorded(1'000'000, 2'000'000'000)));
  EXPECT_THAT(text, HasSubstr("host tokyo-3: 1 process of this user with Seto\n  process 4711 (train): 1 communicator\n"));
  EXPECT_THAT(text, HasSubstr("communicator 00000000000000ab 'world': 3 ranks at 2 sites, tokyo (ranks 0-1); osaka (rank 2)\n"));
  EXPECT_THAT(text, HasSubstr("codec auto, by now fp16: 2.00 times fewer bytes\n"));
  EXPECT_THAT(text,
              HasSubstr("  rank 1 (process 4711), at site tokyo: 17 operations issued, 16 done; in operation 17 (all_reduce of "
                        "8 float32, sum) for 12.3 s\n"));
  const std::string titles =
      "  rank  peer  site   state  way                       rate      round trip  shortest  sockets  resent  sent    received  "
      "cipher\n";
  const std::string row =
      "  1     2     osaka  open   TCP 10.0.0.1 -> 10.1.0.1  112 MB/s  31.2 ms     30.1 ms   8        0.02 %  2.0 GB  1.5 kB    "
      "TLS_AES_128_GCM_SHA256\n";
  EXPECT_THAT(text, HasSubstr(titles + row));
}

TEST(JobStatus, ShowsThePathOfALinkThatHasSeveral) {
  std::string answer = recorded(1'000'000, 2'000'000'000);
  EXPECT_THAT(text_of(collected(answer)), Not(HasSubstr("path")));
  const std::string sockets = R"("sockets":8,)";
  answer.insert(answer.find(sockets) + sockets.size(), R"("paths":2,"path":1,"used_paths":[1,2],)");
  EXPECT_THAT(text_of(collected(answer)),
              AllOf(HasSubstr("received  path       cipher\n"), HasSubstr("1.5 kB    1, 2 of 2  TLS_AES")));
  const std::string used = R"("used_paths":[1,2],)";
  answer.erase(answer.find(used), used.size());  // of an older library
  EXPECT_THAT(text_of(collected(answer)), HasSubstr("1.5 kB    1 of 2  TLS_AES"));
}

TEST(JobStatus, AddsWhatWasSentSinceAnEarlierStatus) {
  const std::string before = collected(recorded(1'000'000, 1'000'000));
  const std::string now = collected(recorded(3'000'000, 5'000'000));
  const Json json = Json::parse(report_status(now, before, ReportFormat::json).value());
  const Json& link = json.at("processes").at(0).at("communicators").at(0).at("links").at(0);
  EXPECT_DOUBLE_EQ(link.at("sent_per_second"), 2e6);
  EXPECT_DOUBLE_EQ(link.at("received_per_second"), 0);
  EXPECT_THAT(text_of(now, before), AllOf(HasSubstr("sending   receiving  cipher"), HasSubstr("2.0 MB/s  0 B/s      TLS_")));
  EXPECT_THAT(text_of(now, now), Not(HasSubstr("sending"))) << "no time has passed";
}

TEST(JobStatus, NamesASiteThatIsCutOffAndAPeerThatIsLost) {
  EXPECT_THAT(text_of(collected(recorded(1, 1, R"("cut_off","silent_ms":7300)"))), HasSubstr("cut off for 7.3 s"));
  EXPECT_THAT(text_of(collected(recorded(1, 1, R"("silent","silent_ms":7300)"))), HasSubstr("silent for 7.3 s"));
  EXPECT_THAT(text_of(collected(recorded(1, 1, R"("lost","why":"its process has ended")"))),
              AllOf(HasSubstr("  lost  "), HasSubstr("  rank 2 (osaka-1:99): its process has ended\n")));
}

TEST(JobStatus, NamesProcessesThatDoNotAnswer) {
  const std::string torn = recorded(1, 1).substr(0, 300);
  const std::vector<StatusAnswer> answers = {
      {7, {}, failure(Code::timeout, "it does not answer")}, {8, torn, {}}, {9, "{}", {}}, {10, R"({"seto_status":2})", {}}};
  const std::string text = text_of(collect_status(answers, "tokyo-3", 5).value());
  EXPECT_THAT(text, AllOf(HasSubstr("4 processes"), HasSubstr("  process 7: it does not answer\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("  process 8: not JSON, or cut off (300 bytes)\n"), HasSubstr("  process 9: not a status"),
                          HasSubstr("  process 10: not a status")));
}

TEST(JobStatus, SurvivesAnswersOfAnyForm) {
  for (const std::string answer :
       {R"({"seto_status":1})", R"({"seto_status":1,"communicators":7,"pid":"x"})", R"({"seto_status":1,"communicators":[1,{}]})",
        R"({"seto_status":1,"communicators":[{"links":[3,{"site":99,"bytes_sent":1}],"sites":[null],"codec":[]}]})",
        "{\"seto_status\":1,\"host\":\"\xff\",\"program\":\"\\u001b[31m\xc2\x9b\"}"}) {
    const std::string now = collected(answer);
    const std::string text = text_of(now, now);
    EXPECT_THAT(text, HasSubstr("1 process "));
    EXPECT_EQ(text.find('\033'), std::string::npos);
  }
  EXPECT_FALSE(report_status("", "", ReportFormat::text).ok());
  EXPECT_FALSE(report_status(collected("{}"), "[]", ReportFormat::text).ok());
}

}  // namespace
}  // namespace seto

#endif
