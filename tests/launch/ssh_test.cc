#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/launch/program.h"

// `seto run` on other hosts over a real ssh, with temporary keys. Each client starts a server of its own (sshd -i) and speaks to
// it through pipes: a port that a test looks for may be taken by another program before the server listens on it.
namespace seto::testing {
namespace {

using ::testing::HasSubstr;

// As root the server needs this directory, which systems without a running server lack. It stays, because another test may be
// using it.
void make_run_directory() {
  if (geteuid() == 0) (void)mkdir("/run/sshd", 0755);
}

class OverSsh : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_there(kServer) || found({"ssh"}).empty()) GTEST_SKIP() << "skipped: no ssh server and client here (openssh-server)";
    make_run_directory();
    make_key("host");
    make_key("user");
    make_key("other");
    std::filesystem::copy_file(scratch_ / "user.pub", scratch_ / "authorized");
    scratch_.write("server", "HostKey " + (scratch_ / "host") + "\nAuthorizedKeysFile " + (scratch_ / "authorized") +
                                 "\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n"
                                 "PasswordAuthentication no\nLogLevel QUIET\n");
    write_client("client", "user");
    write_client("client_of_another_user", "other");
  }

  void make_key(const std::string& name) const {
    const Ended made = run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch_ / name});
    ASSERT_EQ(made.status, 0) << made.text;
  }
  // Every host name leads to a server of this machine.
  void write_client(const std::string& name, const std::string& key) const {
    scratch_.write(name, "Host *\nProxyCommand " + std::string(kServer) + " -i -f " + (scratch_ / "server") + "\nIdentityFile " +
                             (scratch_ / key) +
                             "\nIdentitiesOnly yes\nIdentityAgent none\nBatchMode yes\nStrictHostKeyChecking no\nLogLevel ERROR\n"
                             "UserKnownHostsFile " +
                             (scratch_ / "known") + "\n");
  }
  [[nodiscard]] std::vector<std::string> seto_run(const std::string& hosts, const std::vector<std::string>& program,
                                                  const std::string& client = "client") const {
    std::vector<std::string> words = {built("seto"), "run", "--hosts", hosts, "--ssh", "ssh -F " + (scratch_ / client), "--"};
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }

  static constexpr const char* kServer = "/usr/sbin/sshd";
  Scratch scratch_;
};

TEST_F(OverSsh, RanksOfSeveralHostsJoinOneCommunicator) {
  const Ended ended = run(seto_run("a:2,b:1,localhost:1", {built("examples/03_env")}));
  EXPECT_EQ(ended.status, 0) << ended.text;
  for (const char* rank : {"0", "1", "2", "3"})
    EXPECT_THAT(ended.text, HasSubstr(std::string("[") + rank + "] rank " + rank + " of 4: sum[0] = 10, expected 10\n"));
}

TEST_F(OverSsh, WordsAndStatusArriveUnchanged) {
  const Ended ended = run(seto_run("a", {"sh", "-c", "printf '%s|' \"$@\"; exit 7", "x", "two words", "$HOME", "it's", ""}));
  EXPECT_EQ(ended.status, 7) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("two words|$HOME|it's||"));
}

TEST_F(OverSsh, RanksEndWithTheirLauncher) {
  Program program(seto_run("a", {"sh", "-c", "echo number $$ is ready; exec sleep 60"}));
  ASSERT_TRUE(program.writes(" is ready")) << program.text();
  const std::string text = program.text().substr(program.text().find("number ") + 7);
  const auto rank = static_cast<pid_t>(std::stol(text));
  ASSERT_EQ(kill(rank, 0), 0);
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(20).status, 128 + SIGKILL);
  const Deadline until = Deadline::after_ms(20'000);
  while (kill(rank, 0) == 0 && !until.passed()) poll(nullptr, 0, 5);  // it is not a child of this process
  EXPECT_EQ(kill(rank, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(OverSsh, ARejectionIsPrintedInTheServersWords) {
  const Ended ended = run(seto_run("a", {"true"}, "client_of_another_user"));
  EXPECT_EQ(ended.status, 255) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("Permission denied"));
  EXPECT_THAT(ended.text, HasSubstr("host a with 1 ranks is lost"));
}

}  // namespace
}  // namespace seto::testing
