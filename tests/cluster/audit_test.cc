// SETO_AUDIT_FILE: what a job between two sites leaves in its audit log.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

namespace files = std::filesystem;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

class Audit : public ::testing::Test {
 protected:
  Audit() {
    std::string pattern = (files::temp_directory_path() / "seto_audit_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    setenv("SETO_AUDIT_FILE", path().c_str(), 1);
  }
  ~Audit() override {
    unsetenv("SETO_AUDIT_FILE");
    files::remove_all(folder_);
  }
  [[nodiscard]] std::string path() const { return (folder_ / "audit").string(); }

  // The ciphers that the lines name.
  [[nodiscard]] std::set<std::string> ciphers() const {
    std::set<std::string> all;
    const std::regex cipher(R"re("cipher":"([^"]*)")re");
    for (const std::string& line : lines()) {
      std::smatch match;
      EXPECT_TRUE(std::regex_search(line, match, cipher)) << line;
      all.insert(match[1]);
    }
    return all;
  }

  // A job of three nodes: ranks 0 and 1 at one site, rank 2 at the other one, if there are two.
  static void run(int sites) {
    run_ranks(Kind::processes, kRanks, [sites](const Seat& seat) {
      const std::string host = "audit " + std::to_string(seat.rank);
      setoConfig_t config = config_of_test();
      config.hostId = host.c_str();
      config.siteId = seat.rank == 2 && sites == 2 ? "west" : "east";
      const setoComm_t comm = seat.join(config);
      ASSERT_NE(comm, nullptr);
      std::vector<int> values(100'000, 1);
      const Answer done = answer(setoAllReduce(values.data(), values.data(), values.size(), setoInt32, setoSum, comm, nullptr));
      EXPECT_EQ(done.code, setoSuccess) << done;
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
  }

  [[nodiscard]] std::vector<std::string> lines() const {
    std::ifstream file(path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  files::path folder_;
};

TEST_F(Audit, EachEndOfAFlowBetweenSitesHasALineWhenItBeginsAndOneWhenItEnds) {
  run(2);
  const std::vector<std::string> all = lines();
  EXPECT_EQ(all.size(), 8U) << "two pairs, two ends, two lines";
  const std::string time = R"("\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")";
  const std::string common =
      R"(,"time":)" + time + R"re(,"communicator":"[0-9a-f]{16}","name":"[^"]*","rank":(\d),"peer_rank":(\d),)re" +
      R"re("site":"(east|west)","peer_site":"(east|west)","place":"[^"]+:\d+","peer_place":"[^"]+:\d+",)re" +
      R"re("address":"[0-9a-f.:]+","peer_address":"[0-9a-f.:]+","codec":"[^"]+","cipher":"[^"]+","start":)re" + time;
  const std::regex begin(R"re(\{"event":"flow_begin")re" + common + R"(\})");
  const std::string ways = R"re(,"ways":\[(?:\["[0-9a-f.:]+","[0-9a-f.:]+"\],?)*\])re";
  const std::regex end(R"re(\{"event":"flow_end")re" + common + ways + R"(,"end":)" + time +
                       R"re(,"bytes_sent":(\d+),"bytes_received":(\d+),"outcome":"ended"\})re");
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  int begun = 0;
  for (const std::string& line : all) {
    std::smatch match;
    const bool is_begin = std::regex_match(line, match, begin);
    ASSERT_TRUE(is_begin || std::regex_match(line, match, end)) << line;
    EXPECT_EQ(match[3], match[1] == "2" ? "west" : "east") << line;
    EXPECT_NE(match[3], match[4]) << line;
    begun += is_begin ? 1 : 0;
    if (is_begin) continue;
    EXPECT_TRUE(match[5] == "0" || line.find(R"("ways":[[")") != std::string::npos) << line;
    sent += std::stoull(match[5]);
    received += std::stoull(match[6]);
  }
  EXPECT_EQ(begun, 4);
  EXPECT_GT(sent, 400'000U) << "the sum crosses the link between the sites at least once";
  EXPECT_GT(received, 400'000U);
}

TEST_F(Audit, LinesNameTheCipher) {
  for (const char* const mode : {"off", "always"}) {
    setenv("SETO_TLS", mode, 1);
    files::remove(path());
    run(2);
    const std::set<std::string> seen = ciphers();
    ASSERT_EQ(seen.size(), 1U);
    const std::string cipher = std::string_view(mode) == "off" ? "none" : "TLS_(AES_128_GCM|CHACHA20_POLY1305)_SHA256";
    EXPECT_TRUE(std::regex_match(*seen.begin(), std::regex(cipher))) << *seen.begin();
  }
  unsetenv("SETO_TLS");
}

TEST_F(Audit, AJobAtOneSiteLeavesNothing) {
  run(1);
  EXPECT_FALSE(files::exists(path()));
}

}  // namespace
}  // namespace seto::testing
