#include "src/bootstrap/providers/pmi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/fd.h"

namespace seto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A launcher of one process. It answers the first word of each line with a given text, or not at all.
class Launcher final {
 public:
  explicit Launcher(std::map<std::string, std::string> answers) : answers_(std::move(answers)) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_ = Fd(ends[0]);
    process_ = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  ~Launcher() {
    shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  [[nodiscard]] int process() const { return process_; }
  // The lines that the process sent, once it has ended.
  std::vector<std::string> heard() {
    shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
    thread_ = std::thread([] {});
    return heard_;
  }

 private:
  void serve() {
    std::string unread;
    char byte = 0;
    while (read(ours_.get(), &byte, 1) == 1) {
      if (byte != '\n') {
        unread += byte;
        continue;
      }
      heard_.push_back(unread);
      const std::string answer = answers_[unread.substr(0, unread.find(' '))];
      unread.clear();
      // In two pieces, as a stream may deliver it.
      const std::size_t half = answer.size() / 2;
      if (answer.empty() || send(ours_.get(), answer.data(), half, MSG_NOSIGNAL) < 0) continue;
      if (send(ours_.get(), answer.data() + half, answer.size() - half, MSG_NOSIGNAL) < 0) return;
    }
  }

  std::map<std::string, std::string> answers_;
  Fd ours_;
  int process_ = -1;
  std::vector<std::string> heard_;
  std::thread thread_;
};

std::map<std::string, std::string> well_behaved() {
  return {{"cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
          {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7_0\n"},
          {"cmd=put", "cmd=put_result rc=0 msg=success\n"},
          {"cmd=barrier_in", "cmd=barrier_out\n"},
          {"cmd=get", "cmd=get_result rc=0 msg=success value=abcd\n"},
          {"cmd=finalize", "cmd=finalize_ack\n"}};
}

Deadline soon() { return Deadline::after_ms(10'000); }

TEST(Pmi, RankZeroPutsAndAllGet) {
  Launcher launcher(well_behaved());
  const Result<std::string> got = broadcast_over_pmi(launcher.process(), 0, "abcd", soon());
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_EQ(got.value(), "abcd");
  EXPECT_THAT(launcher.heard(), ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname",
                                            "cmd=put kvsname=kvs_7_0 key=seto-root value=abcd", "cmd=barrier_in",
                                            "cmd=get kvsname=kvs_7_0 key=seto-root", "cmd=finalize"));
}

TEST(Pmi, OthersOnlyGet) {
  Launcher launcher(well_behaved());
  const Result<std::string> got = broadcast_over_pmi(launcher.process(), 3, {}, soon());
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_EQ(got.value(), "abcd");
  EXPECT_EQ(launcher.heard().size(), 5U);
}

TEST(Pmi, ARejectionIsReported) {
  auto answers = well_behaved();
  answers["cmd=get"] = "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
  Launcher launcher(answers);
  const Result<std::string> got = broadcast_over_pmi(launcher.process(), 1, {}, soon());
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().text()), HasSubstr("rc=-1 msg=key_not_found"));
  close(launcher.process());
}

TEST(Pmi, AMissingRankEndsAtTheDeadline) {
  auto answers = well_behaved();
  answers.erase("cmd=barrier_in");
  Launcher launcher(answers);
  const Result<std::string> got = broadcast_over_pmi(launcher.process(), 1, {}, Deadline::after_ms(50));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), Code::timeout);
  close(launcher.process());
}

TEST(Pmi, AnEndlessLineOfTheLauncherIsRejected) {
  auto answers = well_behaved();
  answers["cmd=init"] = std::string(100'000, 'x');
  Launcher launcher(answers);
  const Result<std::string> got = broadcast_over_pmi(launcher.process(), 1, {}, soon());
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().text()), HasSubstr("a line of over"));
  close(launcher.process());
}

TEST(Pmi, AnInvalidDescriptorIsNamed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd from(ends[0]);
  const Fd to(ends[1]);
  EXPECT_THAT(std::string(broadcast_over_pmi(ends[1], 0, "a", soon()).status().text()), HasSubstr("is not a socket"));
  EXPECT_THAT(std::string(broadcast_over_pmi(99'999, 0, "a", soon()).status().text()), HasSubstr("PMI_FD=99999 is not a socket"));
}

}  // namespace
}  // namespace seto
