// Control channels between sites whose connections break (decision 32).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "src/control/channel/control_channels.h"
#include "src/control/channel/sent_frames.h"
#include "tests/support/child_process.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_connectors.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using testing::later;
using ::testing::StartsWith;
using testing::TestConnector;

constexpr std::uint64_t kKey = 7;
constexpr std::uint64_t kPatienceMs = 60'000;
constexpr LivenessSettings kBeats{20, 4'000};

// As a firewall does that forgets the connection: the peer's kernel gets a reset. The thread sanitizer would take connect() for a
// change of the descriptor, which the control thread uses meanwhile.
void reset(const ControlChannel& channel) {
  channel.ask_kernel([](int descriptor) {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    EXPECT_EQ(syscall(SYS_connect, descriptor, &none, sizeof none), 0);
  });
}

bool is_connected(const ControlChannel& channel) {
  bool connected = false;
  channel.ask_kernel([&](int descriptor) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    connected = getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  });
  return connected;
}

// A process with its control channels, and the messages that arrived.
class Site {
 public:
  explicit Site(const LivenessSettings& settings = kBeats)
      : channels(ControlChannels::create(*connector.control, *connector.connector, settings).value()),
        hears_(channels->handlers().add({kKey, 0}, {[] { return std::string("the answer"); },
                                                    [this](std::uint32_t, std::string_view bytes) {
                                                      const std::lock_guard lock(mutex_);
                                                      heard_.emplace_back(bytes);
                                                    }})) {}
  [[nodiscard]] std::vector<std::string> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

  TestConnector connector;
  Admission admitted = connector.connector->admit(testing::key_of_test());
  std::unique_ptr<ControlChannels> channels;

 private:
  std::mutex mutex_;
  std::vector<std::string> heard_;
  MessageHandlers::Registration hears_;
};

class ControlChannelResume : public ::testing::Test {
 protected:
  // `stated`: both know that the other is at another site.
  void join(bool stated = true) {
    auto theirs = std::async(std::launch::async, [&] { return there_.channels->connect(request(here_, 2, 1)); });
    auto mine = here_.channels->connect(request(there_, 1, 2));
    auto other = theirs.get();
    ASSERT_TRUE(mine.ok()) << mine.status().text();
    ASSERT_TRUE(other.ok()) << other.status().text();
    ends_ = {*mine, *other};
    for (const auto& end : ends_)
      if (stated) end->at_site("far", kPatienceMs);
  }
  static ConnectRequest request(Site& remote, ContextId mine, ContextId theirs) {
    return testing::request_to(remote.connector, {mine, theirs});
  }
  bool both_hear(const std::string& word) {
    for (const auto& end : ends_) end->send_message(kKey, 0, 0, word);
    return eventually([&] {
      const auto ended = [&](Site& site) {
        const auto all = site.heard();
        return !all.empty() && all.back() == word;
      };
      return ended(here_) && ended(there_);
    });
  }

  Site here_;
  Site there_;
  std::vector<std::shared_ptr<ControlChannel>> ends_;
};

TEST_F(ControlChannelResume, MessagesArriveOnceAndInOrderWhileConnectionsAreReset) {
  ASSERT_NO_FATAL_FAILURE(join());
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  constexpr int kRounds = 40;
  constexpr int kMostMessages = 50;
  std::vector<std::string> sent;
  for (int round = 0; round < kRounds; ++round) {
    const int messages = static_cast<int>(random() % kMostMessages);
    for (int i = 0; i < messages; ++i) {
      sent.push_back(std::to_string(sent.size()) + std::string(random() % 3'000, 'x'));
      for (const auto& end : ends_) end->send_message(kKey, 0, 0, sent.back());
    }
    const auto& end = ends_[random() % 2];
    reset(*end);
    if (random() % 3 == 0) reset(*ends_[random() % 2]);
    const bool waits = random() % 2 == 0;
    ASSERT_TRUE(!waits || eventually([&] { return is_connected(*end); })) << "another connection is made";
  }
  sent.emplace_back("the end");
  ASSERT_TRUE(both_hear("the end")) << here_.heard().size() << " and " << there_.heard().size() << " of " << sent.size() << "; "
                                    << ends_[0]->why() << ends_[1]->why();
  EXPECT_EQ(here_.heard(), sent);
  EXPECT_EQ(there_.heard(), sent);
  for (const auto& end : ends_) EXPECT_FALSE(end->dead()) << end->why();
}

TEST_F(ControlChannelResume, AQuestionIsAnsweredAfterAReset) {
  ASSERT_NO_FATAL_FAILURE(join());
  for (int end = 0; end < 2; ++end) {
    reset(*ends_[static_cast<std::size_t>(end)]);
    ends_[0]->ask(kKey, 0, 0);
    ASSERT_TRUE(eventually([&] { return here_.heard().size() == static_cast<std::size_t>(end) + 1; })) << ends_[0]->why();
  }
  EXPECT_THAT(here_.heard(), ElementsAre("the answer", "the answer"));
}

TEST_F(ControlChannelResume, WithinASiteAResetIsALoss) {
  ASSERT_NO_FATAL_FAILURE(join(false));
  reset(*ends_[0]);
  for (const auto& end : ends_) EXPECT_TRUE(eventually([&] { return end->dead().load(); }));
}

// It takes the reset for a loss. (If the other end had called, it calls again and learns that; else it waits.)
TEST_F(ControlChannelResume, AnEndThatDoesNotKnowTheSiteLosesThePeer) {
  ASSERT_NO_FATAL_FAILURE(join(false));
  ends_[0]->at_site("far", kPatienceMs);
  reset(*ends_[0]);
  EXPECT_TRUE(eventually([&] { return ends_[1]->dead().load(); }));
}

TEST_F(ControlChannelResume, AnOrderlyEndIsTheEndAtOnce) {
  ASSERT_NO_FATAL_FAILURE(join());
  ends_[0]->ask_kernel([](int descriptor) { shutdown(descriptor, SHUT_WR); });
  EXPECT_TRUE(eventually([&] { return ends_[1]->dead().load(); }, 1'500)) << "sooner than any attempt counts as in vain";
  EXPECT_EQ(ends_[1]->why(), "its process has ended");
}

// The first end closes the channel just when its connection has broken: the other one finds a process that has none, if it calls.
// That is no loss of the process.
TEST_F(ControlChannelResume, AnEndThatHasClosedIsNotLost) {
  ASSERT_NO_FATAL_FAILURE(join());
  const std::weak_ptr<ControlChannel> closed = ends_[0];
  reset(*ends_[0]);
  ends_[0].reset();
  EXPECT_TRUE(eventually([&] { return closed.expired(); }));
  EXPECT_FALSE(ends_[1]->dead()) << ends_[1]->why();
  ASSERT_NO_FATAL_FAILURE(join());
  EXPECT_TRUE(both_hear("over a new channel"));
}

// Bytes that a killed process has not read make its kernel reset the connection. Nothing listens at its address then.
TEST(ControlChannelOfAKilledProcess, IsLostAlsoIfItEndsWithAReset) {
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  const auto read_text = [](int fd) {
    char bytes[4096];
    const ssize_t got = read(fd, bytes, sizeof bytes);
    return std::string(bytes, static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  };
  const auto write_text = [](int fd, const std::string& text) {
    if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  };
  ChildProcess child([&] {
    Site site;
    write_text(to_parent[1], site.connector.connector->address());
    const std::string remote = read_text(to_child[0]);
    auto channel = site.channels->connect({remote, kPurposeControl, 2, 1, 0, 0, testing::key_of_test(), later()});
    if (!channel.ok()) return false;
    write_text(to_parent[1], "joined");
    poll(nullptr, 0, 60'000);
    return true;
  });
  Site here;
  const std::string remote = read_text(to_parent[0]);
  write_text(to_child[1], here.connector.connector->address());
  auto channel = here.channels->connect({remote, kPurposeControl, 1, 2, 0, 0, testing::key_of_test(), later()});
  ASSERT_TRUE(channel.ok()) << channel.status().text();
  ASSERT_EQ(read_text(to_parent[0]), "joined");
  channel.value()->at_site("far", kPatienceMs);
  kill(child.pid(), SIGSTOP);
  channel.value()->send_message(kKey, 0, 0, "no thread reads this");
  const std::uint64_t start = monotonic_ns();
  kill(child.pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return channel.value()->dead().load(); }, 10'000));
  std::printf("detected after %.1f s\n", static_cast<double>(monotonic_ns() - start) * 1e-9);
  EXPECT_THAT(channel.value()->why(), StartsWith("its process has ended"));
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
}

TEST(SentFrames, KeepsWhatThePeerHasNotHeard) {
  SentFrames frames;
  frames.add("a");
  frames.keep();
  for (const char* frame : {"b", "c", "d"}) frames.add(frame);
  EXPECT_EQ(frames.kept_bytes(), 3U);
  EXPECT_FALSE(frames.has_all_after(0)) << "the first one was not kept";
  EXPECT_TRUE(frames.has_all_after(1));
  EXPECT_TRUE(frames.heard(3));
  EXPECT_THAT(frames.kept(), ElementsAre("d"));
  EXPECT_FALSE(frames.has_all_after(2));
  EXPECT_TRUE(frames.has_all_after(3));
  EXPECT_TRUE(frames.has_all_after(4));
  EXPECT_FALSE(frames.has_all_after(5)) << "the fifth was never sent";
  EXPECT_FALSE(frames.heard(5));
  EXPECT_TRUE(frames.heard(2)) << "old news";
  EXPECT_EQ(frames.kept_bytes(), 1U);
  frames.clear();
  EXPECT_EQ(frames.kept_bytes(), 0U);
}

}  // namespace
}  // namespace seto
