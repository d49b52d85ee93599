#include "src/control/local/status_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/control/local/status_query.h"
#include "src/net/local_socket.h"
#include "tests/support/child_process.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Deadline later() { return Deadline::after_ms(30'000); }

// A process that tells. It ends with the test.
struct Teller {
  std::string text = "what it does";
  std::atomic<int> asked{0};
  std::unique_ptr<ControlThread> control = ControlThread::create().value();
  std::unique_ptr<StatusSocket> socket = StatusSocket::create(*control, [this] {
                                           asked.fetch_add(1);
                                           return text;
                                         }).value();
};

std::vector<StatusAnswer> ask_this_process(Deadline until = later()) { return ask_for_status(getpid(), until).value(); }

std::string only_text() {
  const std::vector<StatusAnswer> answers = ask_this_process();
  return answers.size() == 1 ? answers.front().text : std::to_string(answers.size()) + " answers";
}

// All that arrives until the other end closes, at most until the deadline.
std::string rest_of(const PrivateFd& fd) {
  std::string all;
  char bytes[4096];
  while (wait_for(fd.get(), POLLIN, later()).ok()) {
    const ssize_t got = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) break;
    all.append(bytes, static_cast<std::size_t>(got));
  }
  return all;
}

TEST(StatusSocket, TellsWhoAsksAsOftenAsItIsAsked) {
  Teller teller;
  EXPECT_EQ(pid_in_socket_name(teller.socket->name()), getpid());
  EXPECT_EQ(only_text(), teller.text);
  EXPECT_EQ(only_text(), teller.text);
  EXPECT_EQ(teller.asked, 2);
}

TEST(StatusSocket, SendsItsLongestTextWhole) {
  Teller teller;
  teller.text.assign(kLongestStatus, 'x');
  teller.text.back() = 'y';
  EXPECT_EQ(only_text(), teller.text);
}

TEST(StatusSocket, IsNotThereAnyMoreOnceItIsDestroyed) {
  { const Teller teller; }
  EXPECT_THAT(ask_this_process(), IsEmpty());
}

TEST(StatusSocket, AnAskerThatNeverReadsKeepsNobodyWaiting) {
  Teller teller;
  teller.text = std::string(kLongestStatus, 'x');
  std::vector<PrivateFd> lazy;
  for (int i = 0; i < 40; ++i) lazy.push_back(connect_local(teller.socket->name(), SocketKind::stream, later()).value());
  EXPECT_EQ(only_text(), teller.text);
  EXPECT_EQ(rest_of(lazy.front()), teller.text) << "it may still read";
}

TEST(StatusSocket, GarbageChangesNothing) {
  Teller teller;
  for (int i = 0; i < 20; ++i) {
    const PrivateFd fd = connect_local(teller.socket->name(), SocketKind::stream, later()).value();
    const std::string garbage(10'000, '\xff');
    static_cast<void>(send(fd.get(), garbage.data(), garbage.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  EXPECT_EQ(only_text(), teller.text);
}

TEST(StatusSocket, ManyAskersAtOnceAllGetTheText) {
  Teller teller;
  std::vector<std::future<std::string>> askers;
  for (int i = 0; i < 16; ++i) askers.push_back(std::async(std::launch::async, only_text));
  for (auto& asker : askers) EXPECT_EQ(asker.get(), teller.text);
}

TEST(StatusSocket, OtherUsersGetNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: needs root";
  std::array<int, 2> told{};
  ASSERT_EQ(pipe(told.data()), 0);
  ChildProcess process([&] {
    Teller teller;
    const std::string& name = teller.socket->name();
    char word = 0;
    // The parent learns the name, asks, and closes its end.
    const bool written = write(told[1], name.data(), name.size()) == static_cast<ssize_t>(name.size());
    close(told[1]);
    while (teller.asked == 0 && poll(nullptr, 0, 1) == 0 && word == 0) {
    }
    return written && teller.asked == 1;
  });
  close(told[1]);
  std::string name(100, '\0');
  const ssize_t size = read(told[0], name.data(), name.size());
  ASSERT_GT(size, 0);
  name.resize(static_cast<std::size_t>(size));
  ChildProcess other_user([&] {
    constexpr uid_t kNobody = 65'534;
    if (setuid(kNobody) != 0) return false;
    const PrivateFd fd = connect_local(name, SocketKind::stream, later()).value();
    return rest_of(fd).empty() && ask_for_status(pid_in_socket_name(name), later()).value().empty();
  });
  EXPECT_TRUE(other_user.wait());
  const std::vector<StatusAnswer> answers = ask_for_status(process.pid(), later()).value();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers.front().text, "what it does");
  EXPECT_TRUE(process.wait()) << "the other user was told nothing";
  close(told[0]);
}

TEST(StatusSocket, AStoppedProcessIsNamedAtTheDeadline) {
  std::array<int, 2> told{};
  ASSERT_EQ(pipe(told.data()), 0);
  ChildProcess process([&] {
    const Teller teller;
    static_cast<void>(!write(told[1], "!", 1));
    while (poll(nullptr, 0, 1'000) == 0) {
    }
    return true;
  });
  char word = 0;
  ASSERT_EQ(read(told[0], &word, 1), 1);
  ASSERT_EQ(kill(process.pid(), SIGSTOP), 0);
  int state = 0;
  ASSERT_EQ(waitpid(process.pid(), &state, WUNTRACED), process.pid());
  const std::vector<StatusAnswer> answers = ask_for_status(process.pid(), Deadline::after_ms(100)).value();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers.front().pid, process.pid());
  EXPECT_THAT(std::string(answers.front().failure.text()), HasSubstr("does not answer"));
  for (const int end : told) close(end);
}

TEST(StatusSocket, AnswersWithoutFreeDescriptors) {
  ChildProcess process([] {
    Teller teller;
    const std::string& name = teller.socket->name();
    const PrivateFd first = connect_local(name, SocketKind::stream, later()).value();
    if (rest_of(first) != teller.text) return false;
    const int asker = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    close(asker);  // the number of the last free descriptor: the next connection takes it, and the process has no other
    const rlimit limit{static_cast<rlim_t>(asker) + 1, static_cast<rlim_t>(asker) + 1};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    const PrivateFd second = connect_local(name, SocketKind::stream, later()).value();
    return rest_of(second) == teller.text;
  });
  EXPECT_TRUE(process.wait());
}

TEST(StatusSocket, AForkedChildDoesNotTell) {
  ChildProcess outer([] {
    const Teller teller;
    ChildProcess child([&] { return ask_for_status(getpid(), later()).value().empty(); });
    return child.wait() && only_text() == teller.text;
  });
  EXPECT_TRUE(outer.wait());
}

TEST(StatusQuery, FindsListeningSocketsWithAProcessIdOnly) {
  const std::string table =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 12345 @seto-status.4711.0badcafe\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 12346 @seto-status.4711.0badcafe\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 12347 @seto-status.x.1\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 12348 /run/seto-status.12.1\n"
      "0000000000000000: 00000002 00000000 00010000 0005 01 12349 @seto-0123456789abcdef\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 12350\n"
      "0000000000000000: 00000002";
  EXPECT_THAT(status_sockets_in(table), ElementsAre("seto-status.4711.0badcafe"));
  EXPECT_EQ(pid_in_socket_name("seto-status.99999999999.1"), 0);
}

}  // namespace
}  // namespace seto
