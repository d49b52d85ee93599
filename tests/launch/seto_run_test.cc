#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/launch/program.h"

// `seto run` as users start it. Ranks that only wait do so for a minute, longer than any test.
namespace seto::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

Words seto_run(const Words& options, const Words& program) {
  Words words = {built("seto"), "run"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

// The path of seto, quoted for a script.
std::string quoted_seto() { return std::string("'").append(built("seto")).append("'"); }

Words script(const Words& options, const std::string& text) { return seto_run(options, {"sh", "-c", text}); }

// Replaces ssh: it runs the command on this machine and names the host. As with ssh, a shell parses the command, and the last
// line is not the agent's.
constexpr const char* kShell =
    "#!/bin/sh\necho \"$@\" >> \"$STUB_LOG\"\necho welcome to $1\nexport STUB_HOST=$1\nshift\n"
    "[ \"$STUB_GOODBYE\" ] || eval \"exec $*\"\neval \"$*\"\necho goodbye from $STUB_HOST >&2\n";

// Holds a process so that even SIGKILL does not end it for its parent: it stays a zombie that only its tracer can reap.
class Held final {
 public:
  explicit Held(pid_t process) : process_(process), held_(ptrace(PTRACE_SEIZE, process, nullptr, nullptr) == 0) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (!held_) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, __WALL);
  }
  [[nodiscard]] bool held() const { return held_; }

 private:
  pid_t process_;
  bool held_;
};

pid_t number_after(const std::string& text, const std::string& mark) {
  return static_cast<pid_t>(std::stol(text.substr(text.find(mark) + mark.size())));
}

class OtherHosts : public ::testing::Test {
 protected:
  Scratch scratch_;
  std::string shell_ = scratch_.write("shell", kShell);
  std::string log_ = scratch_ / "log";
  Words variables_ = {"STUB_LOG=" + log_};
  Words hosts(const std::string& list) const { return {"--hosts", list, "--ssh", shell_}; }
};

TEST(SetoRun, RanksJoinOneCommunicator) {
  const Ended ended = run(seto_run({"-n", "4"}, {built("examples/03_env")}));
  EXPECT_EQ(ended.status, 0) << ended.text;
  for (const char* rank : {"0", "1", "2", "3"})
    EXPECT_THAT(ended.text, HasSubstr(std::string("[") + rank + "] rank " + rank + " of 4: sum[0] = 10, expected 10\n"));
}

TEST(SetoRun, SixtyFourRanks) {
  const Ended ended = run(seto_run({"-n", "64"}, {built("examples/03_env")}));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("[ 7] rank 7 of 64: sum[0] = 2080, expected 2080\n"));
}

TEST(SetoRun, ThreadsOfProcesses) {
  const Ended ended = run(seto_run({"-n", "2"}, {built("examples/04_threads")}));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 5 of 6: sum = 15, expected 15"));
}

TEST(SetoRun, SolverAgreesWithASerialRun) {
  const Ended ended = run(seto_run({"-n", "3"}, {built("examples/hpc_cg"), "--size", "200", "--check"}));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(HasSubstr("iteration    100"), HasSubstr("converged"), HasSubstr("the same solution")));
}

TEST(SetoRun, LinesAreWholeAndPrefixed) {
  const Ended two = run(script({"-n", "2"}, "printf 'a\\nb'; echo c >&2"));
  EXPECT_EQ(two.status, 0);
  for (const char* line : {"[0] a\n", "[0] b\n", "[0] c\n", "[1] a\n", "[1] b\n", "[1] c\n"})
    EXPECT_THAT(two.text, HasSubstr(line));
  EXPECT_THAT(two.text, Not(HasSubstr("\033"))) << "colour, but this is no terminal";
  EXPECT_EQ(run(script({"-n", "1"}, "printf a")).text, "a");
  EXPECT_EQ(run(script({"-n", "1", "--prefix-output"}, "printf a")).text, "[0] a\n");
  EXPECT_EQ(run(script({"-n", "2", "--no-prefix"}, "echo a")).text, "a\na\n");
}

TEST(SetoRun, MuchOutputArrivesWhole) {
  const Ended ended = run(script({"-n", "2"}, "seq 1 50000"));
  EXPECT_EQ(std::count(ended.text.begin(), ended.text.end(), '\n'), 100'000);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("[0] 50000\n"), HasSubstr("[1] 50000\n")));
}

TEST(SetoRun, RanksHaveTheirVariables) {
  const Ended ended = run(script({"-n", "2", "--env", "GIVEN=some thing", "--env", "OURS"},
                                 "echo $SETO_RANK/$SETO_RANKS $LOCAL_RANK/$LOCAL_WORLD_SIZE $GIVEN $OURS"),
                          {"OURS=here", "SETO_RANK=7", "SETO_RANKS=8", "SETO_ROOT=nowhere:1"});
  EXPECT_THAT(ended.text, AllOf(HasSubstr("[0] 0/2 0/2 some thing here\n"), HasSubstr("[1] 1/2 1/2 some thing here\n")));
}

TEST(SetoRun, InputGoesToRankZero) { EXPECT_EQ(run(script({"-n", "2"}, "cat"), {}, "some text\n").text, "[0] some text\n"); }

TEST(SetoRun, ProgramsKeepTheirOptions) {
  EXPECT_EQ(run({built("seto"), "run", "-n", "1", "echo", "-n", "--hosts"}).text, "--hosts");
  EXPECT_EQ(run({built("seto"), "run", "-n", "1", "--", "echo", "--", "-x"}).text, "-- -x\n");
}

TEST(SetoRun, StatusIsThatOfTheWorstRank) {
  const Ended ended = run(script({"-n", "3"}, "exit $SETO_RANK"));
  EXPECT_EQ(ended.status, 2) << ended.text;
  const Ended killed = run(script({"-n", "2"}, "kill -SEGV $$"));
  EXPECT_EQ(killed.status, 128 + SIGSEGV) << killed.text;
}

TEST(SetoRun, ADyingRankEndsTheOthers) {
  Program program(script({"-n", "3"}, "if [ $SETO_RANK = 1 ]; then kill -9 $$; fi; sleep 60 & wait"));
  const Ended ended = program.wait(20);
  EXPECT_EQ(ended.status, 128 + SIGKILL) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("seto run: rank 1 was killed by signal 9 (SIGKILL); ending the other 2\n"));
  EXPECT_TRUE(program.family_ends(10)) << "a child of a rank was left behind";
}

// Descendants of every generation, before the launcher ends.
TEST(SetoRun, DescendantsOfAFailedRankAreEnded) {
  const Words tree = {"sh", "-c", "sh -c 'sh -c \"sleep 60; true\"; true' & echo up; exit 3"};
  for (int round = 0; round < 3; ++round) {
    Program program(seto_run({"-n", "2"}, tree));
    const Ended ended = program.wait(20);
    EXPECT_EQ(ended.status, 3) << ended.text;
    EXPECT_THAT(program.family(), ::testing::IsEmpty()) << "left behind";
  }
}

TEST(SetoRun, ARankThatCannotBeKilledDelaysNothing) {
  Program program(script({"-n", "2", "--grace", "0.1"}, "echo rank$SETO_RANK=$$.; exec sleep 60"));
  ASSERT_TRUE(program.writes("[1] rank1=") && program.writes(".\n")) << program.text();
  const Held rank(number_after(program.text(), "rank1="));
  if (!rank.held()) GTEST_SKIP() << "skipped: this system does not allow ptrace";
  program.signal(SIGTERM);
  const Ended ended = program.wait(30);
  EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("seto run: rank 1 cannot be killed: left behind\n"));
}

TEST(SetoRun, ARankThatIgnoresSigtermIsKilled) {
  const std::uint64_t began = monotonic_ns();
  Program program(
      script({"-n", "2", "--grace", "0.3"}, "trap '' TERM; [ $SETO_RANK = 0 ] && exit 7; while :; do sleep 60; done"));
  const Ended ended = program.wait(20);
  EXPECT_EQ(ended.status, 7) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 0 exited with status 7; ending the other 1"));
  EXPECT_LT(monotonic_ns() - began, 10'000'000'000U);
  EXPECT_TRUE(program.family_ends(10));
}

// A program that ends early makes the others fail, although its own status is 0.
TEST(SetoRun, AnEarlierEndWithStatusZeroIsNamedToo) {
  const std::string file = ::testing::TempDir() + "seto_left_early_" + std::to_string(getpid());
  const Ended ended =
      run(script({"-n", "2", "--timeout", "20"}, "if [ $SETO_RANK = 1 ]; then echo $$ > " + file + "; exit 0; fi; until [ -s " +
                                                     file + " ]; do sleep 0.01; done; while kill -0 $(cat " + file +
                                                     ") 2>/dev/null; do sleep 0.01; done; exit 3"));
  unlink(file.c_str());
  EXPECT_EQ(ended.status, 3) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 0 exited with status 3, after rank 1 had ended with status 0"));
}

TEST(SetoRun, TimeoutEndsTheJob) {
  const Ended ended = run(seto_run({"-n", "2", "--timeout", "0.2"}, {"sleep", "60"}));
  EXPECT_EQ(ended.status, 124) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("--timeout"));
}

TEST(SetoRun, SignalsAreForwarded) {
  Program program(script({"-n", "2"}, "trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(program.writes("[0] ready") && program.writes("[1] ready")) << program.text();
  program.signal(SIGUSR1);
  const Ended handed = program.wait(20);
  EXPECT_EQ(handed.status, 0) << handed.text;
  EXPECT_THAT(handed.text, AllOf(HasSubstr("[0] got it"), HasSubstr("[1] got it")));
}

TEST(SetoRun, InterruptAndTerminateEndTheJob) {
  for (const int number : {SIGINT, SIGTERM}) {
    Program program(seto_run({"-n", "2", "--no-prefix"}, {"sh", "-c", "echo ready; exec sleep 60"}));
    ASSERT_TRUE(program.writes("ready\nready")) << program.text();
    program.signal(number);
    const Ended ended = program.wait(20);
    EXPECT_EQ(ended.status, 128 + number) << ended.text;
    EXPECT_TRUE(program.family_ends(10));
  }
}

TEST(SetoRun, RanksDieWithTheLauncher) {
  Program program(seto_run({"-n", "3", "--no-prefix"}, {"sh", "-c", "echo ready; exec sleep 60"}));
  ASSERT_TRUE(program.writes("ready\nready\nready")) << program.text();
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(20).status, 128 + SIGKILL);
  EXPECT_TRUE(program.family_ends(10));
}

TEST(SetoRun, AClosedOutputPipeEndsTheJob) {
  const Ended ended = run({"sh", "-c", quoted_seto() + " run -n 2 -- yes | head -1"});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, EndsWith("] y\n"));
}

TEST(SetoRun, MisuseIsNamed) {
  const auto refusal = [](const Words& words) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2) << ended.text;
    return ended.text;
  };
  EXPECT_THAT(refusal({built("seto"), "run", "-n", "2"}), HasSubstr("write it after --"));
  EXPECT_THAT(refusal(seto_run({}, {"true"})), HasSubstr("-n N"));
  EXPECT_THAT(refusal(seto_run({"-n", "0"}, {"true"})), HasSubstr("'0' is not one of 1 to 65536"));
  EXPECT_THAT(refusal(seto_run({"--bogus", "-n", "2"}, {"true"})), HasSubstr("'--bogus' is not an option"));
  EXPECT_THAT(refusal(seto_run({"-np", "2"}, {"true"})), HasSubstr("-np is -n here"));
  EXPECT_THAT(refusal(seto_run({"--hosts", "a:x"}, {"true"})), HasSubstr("'a:x' is not a host"));
  EXPECT_THAT(refusal(seto_run({"-n", "9", "--hosts", "a:2,b:2"}, {"true"})), HasSubstr("4 slots"));
  EXPECT_THAT(refusal(seto_run({"--hostfile", "/nowhere/hosts"}, {"true"})), HasSubstr("/nowhere/hosts"));
  EXPECT_THAT(refusal(seto_run({"--hostfile", "/"}, {"true"})), HasSubstr("--hostfile /: Is a directory"));
  EXPECT_THAT(refusal(seto_run({"-n", "1", "--env", "SETO_RANK=1"}, {"true"})), HasSubstr("sets this variable itself"));
  const Ended absent = run(seto_run({"-n", "2"}, {"./no_such_program"}));
  EXPECT_EQ(absent.status, 127);
  EXPECT_THAT(absent.text, HasSubstr("cannot run ./no_such_program: No such file"));
}

TEST_F(OtherHosts, RanksAreSpreadOverThem) {
  const Ended ended =
      run(script(hosts("a:1,b:2"), "echo $STUB_HOST $SETO_RANK $LOCAL_RANK/$LOCAL_WORLD_SIZE; cat"), variables_, "in\n");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(HasSubstr("[0] a 0 0/1\n"), HasSubstr("[1] b 1 0/2\n"), HasSubstr("[2] b 2 1/2\n"),
                                HasSubstr("[0] in\n"), HasSubstr("seto run: b: welcome to b\n")));
  const Ended sum = run(seto_run(hosts("localhost:1,b:2"), {built("examples/03_env")}), variables_);
  EXPECT_EQ(sum.status, 0) << sum.text;
  EXPECT_THAT(sum.text, HasSubstr("[2] rank 2 of 3: sum[0] = 6, expected 6"));
}

TEST_F(OtherHosts, NoSecretIsOnACommandLine) {
  const Ended ended = run(script(hosts("a:1"), "echo $SETO_ROOT"), variables_);
  std::ifstream log(log_);
  const std::string words((std::istreambuf_iterator<char>(log)), {});
  EXPECT_EQ(words, std::string("a ").append(built("seto")) + " agent\n");
  EXPECT_THAT(ended.text, HasSubstr("id:")) << "the rank has the id";
}

TEST(SetoRun, TheTokenOfTheJobIsNotPrinted) {
  const Ended ended = run(seto_run({"-n", "1"}, {"sh", "-c", quoted_seto() + " info config; " + quoted_seto() + " info --json"}));
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("SETO_ROOT +id:\\(not shown\\)"));
  EXPECT_THAT(ended.text, Not(ContainsRegex("id:[0-9a-f]{8}")));
}

TEST_F(OtherHosts, ADyingRemoteRankEndsAllRanks) {
  Program program(script(hosts("localhost:1,b:2"), "[ $SETO_RANK = 2 ] && exit 5; sleep 60 & wait"), variables_);
  const Ended ended = program.wait(20);
  EXPECT_EQ(ended.status, 5) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 2 on b exited with status 5; ending the other 2"));
  EXPECT_TRUE(program.family_ends(10));
}

TEST_F(OtherHosts, TheLastLineOfARemoteShellIsPrinted) {
  Words variables = variables_;
  variables.emplace_back("STUB_GOODBYE=1");
  for (int round = 0; round < 5; ++round) {
    Program program(script(hosts("b:2"), "[ $SETO_RANK = 1 ] && exit 5; sleep 60 & wait"), variables);
    const Ended ended = program.wait(20);
    EXPECT_EQ(ended.status, 5) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("seto run: b: goodbye from b\n"));
    EXPECT_TRUE(program.family_ends(10));
  }
}

TEST_F(OtherHosts, ThePathOfTheAgentMayContainAnyCharacter) {
  const std::filesystem::path seto = scratch_ / "its $own 'place";
  std::filesystem::copy_file(built("seto"), seto);
  Words words = {seto.string(), "run"};
  for (const std::string& option : hosts("b:1")) words.push_back(option);
  words.insert(words.end(), {"--", "echo", "arrived"});
  const Ended ended = run(words, variables_);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("arrived"));
}

// 64 MiB are more than all pipes on the path hold.
TEST_F(OtherHosts, InputWaitsUntilRankZeroReads) {
  const std::string path = scratch_ / "input";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Fd input(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  Words words = {"sh", "-c", "exec \"$@\" < '" + path + "'", "sh"};
  for (const std::string& word : script(hosts("b:1"), "trap 'wc -c; exit 0' USR1; echo ready; while :; do sleep 0.05; done"))
    words.push_back(word);
  Program program(words, variables_);
  ASSERT_TRUE(program.writes("ready")) << program.text();
  const std::string bytes(65'536, 'x');
  std::size_t written = 0;
  for (pollfd entry{input.get(), POLLOUT, 0}; written < (std::size_t{80} << 20) && poll(&entry, 1, 1'000) > 0;)
    written += static_cast<std::size_t>(std::max<ssize_t>(0, write(input.get(), bytes.data(), bytes.size())));
  EXPECT_LT(written, std::size_t{8} << 20) << "some process reads the input, although rank 0 does not";
  program.signal(SIGUSR1);
  input.close();
  const Ended ended = program.wait(30);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr(std::string("\n").append(std::to_string(written)).append("\n")));
}

TEST_F(OtherHosts, ALostHostEndsAllRanks) {
  const std::string failing = scratch_.write("failing", "#!/bin/sh\necho no route to $1 >&2\nexit 255\n");
  const Ended refused = run(seto_run({"--hosts", "localhost,b", "--ssh", failing}, {"sleep", "60"}));
  EXPECT_EQ(refused.status, 255) << refused.text;
  EXPECT_THAT(refused.text, AllOf(HasSubstr("seto run: b: no route to b\n"), HasSubstr("host b with 1 ranks is lost")));

  Program cut(script(hosts("localhost:1,b:1"), "if [ $STUB_HOST ]; then kill -9 $PPID; fi; sleep 60"), variables_);
  const Ended ended = cut.wait(20);
  EXPECT_EQ(ended.status, 255) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("host b with 1 ranks is lost: the remote shell was killed by signal 9"));
  EXPECT_TRUE(cut.family_ends(10));
}

TEST_F(OtherHosts, AgentsEndTheirRanksWhenTheLauncherDies) {
  Program program(script(hosts("b:2"), "echo ready; exec sleep 60"), variables_);
  ASSERT_TRUE(program.writes("[0] ready") && program.writes("[1] ready")) << program.text();
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(20).status, 128 + SIGKILL);
  EXPECT_TRUE(program.family_ends(10));
}

TEST_F(OtherHosts, AnotherVersionIsRejected) {
  const std::string old = scratch_.write("old", "#!/bin/sh\nprintf '\\001seto agent 0.0.1\\n'\nexec cat >/dev/null\n");
  const Ended ended = run(seto_run({"--hosts", "b", "--ssh", old}, {"true"}));
  EXPECT_EQ(ended.status, 255) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("that host has seto 0.0.1, this one has "));
  const std::string noise = scratch_.write(
      "noise", std::string("#!/bin/sh\nprintf '\\001seto agent '; ").append(quoted_seto()) + " --version | cut -d' ' -f2\nyes\n");
  EXPECT_THAT(run(seto_run({"--hosts", "b", "--ssh", noise}, {"true"})).text, HasSubstr("not messages of seto"));
}

TEST(Completion, OffersCommandsAndOptions) {
  const auto offered = [](const std::string& words, int at) {
    return run({"bash", "-c",
                std::string("source <(").append(quoted_seto()) + " completion bash); COMP_WORDS=(" + words +
                    "); COMP_CWORD=" + std::to_string(at) + "; _seto; echo \"${COMPREPLY[@]}\""})
        .text;
  };
  if (found({"bash"}).empty()) GTEST_SKIP() << "skipped: needs bash";
  EXPECT_EQ(offered("seto ru", 1), "run\n");
  EXPECT_EQ(offered("seto run --hosts", 2), "--hosts\n");
  EXPECT_EQ(offered("seto explain all_r", 2), "all_reduce\n");
  EXPECT_EQ(offered("seto completion z", 2), "zsh\n");
  for (const char* shell : {"zsh", "fish"})
    EXPECT_THAT(run({built("seto"), "completion", shell}).text, AllOf(HasSubstr("run"), HasSubstr("hostfile")));
  for (const char* shell : {"zsh", "fish"}) {
    if (found({shell}).empty()) continue;
    EXPECT_EQ(run({"sh", "-c", quoted_seto() + " completion " + shell + " | " + shell + " -n"}).status, 0) << shell;
  }
  EXPECT_EQ(run({built("seto"), "completion", "csh"}).status, 2);
}

}  // namespace
}  // namespace seto::testing
