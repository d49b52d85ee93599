#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/launch/program.h"

// `seto run` on other hosts over a real ssh: the test starts a server on loopback, with temporary keys.
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
    const std::string port = std::to_string(free_port());
    const std::string server = scratch_.write(
        "server",
        "ListenAddress 127.0.0.1\nPort " + port + "\nHostKey " + (scratch_ / "host") + "\nAuthorizedKeysFile " +
            (scratch_ / "authorized") +
            "\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n");
    server_ = std::make_unique<Program>(std::vector<std::string>{kServer, "-D", "-e", "-f", server});
    ASSERT_TRUE(server_->writes("Server listening")) << server_->text();
    write_client("client", "user", port);
    write_client("client_of_another_user", "other", port);
  }

  void make_key(const std::string& name) const {
    const Ended made = run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch_ / name});
    ASSERT_EQ(made.status, 0) << made.text;
  }
  // Every host name leads to this server.
  void write_client(const std::string& name, const std::string& key, const std::string& port) const {
    scratch_.write(name, "Host *\nHostName 127.0.0.1\nPort " + port + "\nIdentityFile " + (scratch_ / key) +
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
  std::unique_ptr<Program> server_;
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
