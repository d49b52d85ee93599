// Control channels between two processes whose connection passes through a third.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/control/channel/control_channels.h"
#include "src/control/network/listen_address.h"
#include "src/net/tcp_socket.h"
#include "tests/support/certificates.h"
#include "tests/support/tcp_connectors.h"

namespace seto {
namespace {

using testing::CertificateAuthority;
using ::testing::HasSubstr;
using testing::HostFiles;
using testing::later;
using ::testing::Not;

// Carries the bytes of all connections to a listener, and keeps a copy. `alter` may change those of the caller.
class Relay {
 public:
  using Alter = std::function<void(std::string& bytes, std::size_t from)>;
  explicit Relay(const SocketAddress& to, Alter alter = {}) : to_(to), alter_(std::move(alter)) {
    listener_ = listen_tcp({parse_host("127.0.0.1").value()}, {}, 16).value();
    thread_ = std::thread([this] { serve(); });
  }
  ~Relay() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] SocketAddress address() const { return listener_.addresses.front(); }
  [[nodiscard]] std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  struct Way {
    int from = -1;
    int to = -1;
    bool of_caller = false;
    std::size_t bytes = 0;
  };
  void serve() {
    while (!stop_) {
      std::vector<pollfd> entries{{listener_.sockets.front().get(), POLLIN, 0}};
      for (const Way& way : ways_) entries.push_back({way.from, POLLIN, 0});
      if (poll(entries.data(), entries.size(), 10) <= 0) continue;
      for (std::size_t i = 0; i + 1 < entries.size(); ++i)
        if (entries[i + 1].revents != 0) carry(ways_[i]);
      if (entries[0].revents == 0) continue;
      PrivateFd called = accept_tcp(listener_.sockets.front());
      auto onward = connect_tcp(to_, later());
      if (!called.valid() || !onward.ok()) continue;
      ways_.push_back({called.get(), onward->get(), true});
      ways_.push_back({onward->get(), called.get(), false});
      sockets_.push_back(std::move(called));
      sockets_.push_back(std::move(onward).value());
    }
  }
  void carry(Way& way) {
    std::array<char, 65'536> buffer;
    const ssize_t got = recv(way.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) {
      shutdown(way.to, SHUT_WR);
      way.from = -1;
      return;
    }
    std::string bytes(buffer.data(), static_cast<std::size_t>(got));
    {
      const std::lock_guard lock(mutex_);
      seen_ += bytes;
    }
    if (way.of_caller && alter_) alter_(bytes, way.bytes);
    way.bytes += bytes.size();
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t more = send(way.to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (more < 0 && errno != EAGAIN) return;
      sent += static_cast<std::size_t>(std::max<ssize_t>(more, 0));
    }
  }

  const SocketAddress to_;
  const Alter alter_;
  TcpListener listener_;
  std::vector<PrivateFd> sockets_;
  std::vector<Way> ways_;
  std::mutex mutex_;
  std::string seen_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Process {
  explicit Process(TlsMode mode, const HostFiles* host = nullptr)
      : control(ControlThread::create().value()),
        connector(TcpConnector::create(*control, settings_of(mode, host)).value()),
        channels(ControlChannels::create(*control, *connector, LivenessSettings{0, 300}).value()),
        admission(connector->admit(testing::key_of_test())) {}
  static NetworkSettings settings_of(TlsMode mode, const HostFiles* host) {
    NetworkSettings settings{"lo", "", mode};
    if (host != nullptr) settings.tls_files = {host->certificate(), host->key(), host->authorities()};
    return settings;
  }
  std::unique_ptr<ControlThread> control;
  std::unique_ptr<TcpConnector> connector;
  std::unique_ptr<ControlChannels> channels;
  Admission admission;
};

// Two processes, of which the caller finds the other one at the relay.
class Pair {
 public:
  explicit Pair(TlsMode mode, Relay::Alter alter = {}, const HostFiles* host = nullptr) : one_(mode, host), two_(mode, host) {
    const bool first_calls = one_.connector->self().process < two_.connector->self().process;
    caller = first_calls ? &one_ : &two_;
    answerer = first_calls ? &two_ : &one_;
    ListenAddress known = answerer->connector->self();
    relay = std::make_unique<Relay>(known.candidates.front(), std::move(alter));
    known.candidates = {relay->address()};
    answerers_address_ = encode(known);
  }
  Result<std::shared_ptr<ControlChannel>> connect(Deadline until = later()) {
    auto other = std::async(std::launch::async, [&] {
      return answerer->channels->connect(
          {caller->connector->address(), kPurposeControl, 2, 1, 0, 0, testing::key_of_test(), until});
    });
    auto mine = caller->channels->connect({answerers_address_, kPurposeControl, 1, 2, 0, 0, testing::key_of_test(), until});
    theirs = other.get();
    return mine;
  }

 private:
  Process one_;
  Process two_;
  std::string answerers_address_;

 public:  // destroyed before the processes
  Process* caller = nullptr;
  Process* answerer = nullptr;
  std::unique_ptr<Relay> relay;
  Result<std::shared_ptr<ControlChannel>> theirs = failure(Code::internal, "not yet");
};

TEST(EncryptedChannels, AListenerFindsNoPlainText) {
  for (const TlsMode mode : {TlsMode::off, TlsMode::always}) {
    Pair pair(mode);
    auto channel = pair.connect();
    ASSERT_TRUE(channel.ok()) << channel.status().text();
    ASSERT_TRUE(pair.theirs.ok()) << pair.theirs.status().text();
    std::promise<std::string> heard;
    const auto handler = pair.answerer->channels->handlers().add(
        {7, 2},
        {[] { return std::string(); }, [&](std::uint32_t, std::string_view bytes) { heard.set_value(std::string(bytes)); }});
    const std::string text = std::string("attack at dawn").append(1'000, 'x');
    (*channel)->send_message(7, 2, 1, text);
    EXPECT_EQ(heard.get_future().get(), text);
    const std::string seen = pair.relay->seen();
    EXPECT_GT(seen.size(), text.size());
    EXPECT_EQ(seen.find("attack at dawn") == std::string::npos, mode == TlsMode::always);
    EXPECT_EQ(seen.find("xxxxxxxx") == std::string::npos, mode == TlsMode::always);
  }
}

TEST(EncryptedChannels, CertificatesServeInPlaceOfTheKey) {
  const CertificateAuthority authority;
  const HostFiles host(authority.issue({.name = "tokyo-3"}), authority.pem());
  Pair pair(TlsMode::always, {}, &host);
  auto channel = pair.connect();
  ASSERT_TRUE(channel.ok()) << channel.status().text();
  ASSERT_TRUE(pair.theirs.ok()) << pair.theirs.status().text();
  std::promise<std::string> heard;
  const auto handler = pair.answerer->channels->handlers().add(
      {7, 2},
      {[] { return std::string(); }, [&](std::uint32_t, std::string_view bytes) { heard.set_value(std::string(bytes)); }});
  const std::string text = std::string("attack at dawn").append(3'000, 'x');
  (*channel)->send_message(7, 2, 1, text);
  EXPECT_EQ(heard.get_future().get(), text);
  const std::string seen = pair.relay->seen();
  EXPECT_EQ(seen.find("attack at dawn"), std::string::npos);
  EXPECT_EQ(seen.find("tokyo-3"), std::string::npos) << "certificates are encrypted, too";
}

// The ids of processes decide which one calls, so processes are made until they are as wanted.
struct CallerAndAnswerer {
  CallerAndAnswerer(const HostFiles* callers, const HostFiles* answerers)
      : caller(std::make_unique<Process>(TlsMode::always, callers)) {
    for (int round = 0; round < 100 && !fits(); ++round) {
      answerer.reset();
      if (round % 2 == 1) caller = std::make_unique<Process>(TlsMode::always, callers);
      answerer = std::make_unique<Process>(TlsMode::always, answerers);
    }
    EXPECT_TRUE(fits());
  }
  [[nodiscard]] bool fits() const {
    return answerer != nullptr && caller->connector->self().process < answerer->connector->self().process;
  }
  // One end alone connects, and the other one does nothing but answer.
  [[nodiscard]] std::string failure_at_caller() const { return failure_of(*caller, *answerer); }
  [[nodiscard]] std::string failure_at_answerer() const { return failure_of(*answerer, *caller); }
  static std::string failure_of(const Process& here, const Process& there) {
    const auto channel =
        here.channels->connect({there.connector->address(), kPurposeControl, 1, 2, 0, 0, testing::key_of_test(), later()});
    if (channel.ok()) return "it succeeded";
    EXPECT_NE(channel.status().code(), Code::timeout) << "it ends before its deadline";
    return std::string(channel.status().text());
  }
  std::unique_ptr<Process> caller;
  std::unique_ptr<Process> answerer;
};

// The answerer learns it from the probe of the caller that it waits for.
TEST(EncryptedChannels, ACertificateOfAnotherAuthorityIsNamedAtBothEnds) {
  const CertificateAuthority authority("right CA");
  const CertificateAuthority wrong("wrong CA");
  const HostFiles good(authority);
  const HostFiles foreign(wrong.issue(), authority.pem());
  const CallerAndAnswerer calls(&foreign, &good);
  EXPECT_THAT(calls.failure_at_caller(), HasSubstr("CN=wrong CA"));
  EXPECT_THAT(calls.failure_at_answerer(), HasSubstr("CN=wrong CA"));
  const CallerAndAnswerer answers(&good, &foreign);
  EXPECT_THAT(answers.failure_at_caller(), HasSubstr("CN=wrong CA"));
  EXPECT_THAT(answers.failure_at_answerer(), HasSubstr("CN=wrong CA"));
}

TEST(EncryptedChannels, ANewFileServesTheNextConnection) {
  const CertificateAuthority authority("right CA");
  const CertificateAuthority wrong("wrong CA");
  const HostFiles good(authority);
  const HostFiles changing(authority);
  const CallerAndAnswerer both(&good, &changing);
  const auto connect = [](const Process& from, const Process& to, ContextId mine, AttemptId attempt) {
    return from.connector->connect(
        {to.connector->address(), kPurposeData, mine, 3 - mine, attempt, 0, testing::key_of_test(), later()});
  };
  auto answered = std::async(std::launch::async, [&] { return connect(*both.answerer, *both.caller, 2, 1).status(); });
  auto first = connect(*both.caller, *both.answerer, 1, 1);
  ASSERT_TRUE(first.ok()) << first.status().text();
  EXPECT_TRUE(first->encrypted());
  EXPECT_TRUE(answered.get().ok());
  const auto issued = wrong.issue();
  changing.put_key(issued.key);
  changing.put_certificate(issued.certificate);
  const auto second = connect(*both.caller, *both.answerer, 1, 2);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().text()), HasSubstr("CN=wrong CA"));
}

TEST(EncryptedChannels, AConnectorWithABadFileIsNotMade) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  host.put_key(authority.issue().key);
  const auto control = ControlThread::create().value();
  const auto made = TcpConnector::create(*control, Process::settings_of(TlsMode::sites, &host));
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(std::string(made.status().text()), HasSubstr("does not belong to the certificate"));
}

// The relay turns the caller's hello into one that asks for plain bytes.
TEST(EncryptedChannels, ARelayCannotTakeOutTheEncryption) {
  Pair pair(TlsMode::always, [](std::string& bytes, std::size_t from) {
    if (from == 0 && bytes.size() >= kHelloSize) bytes[kHelloSize - 4] = '\0';
  });
  auto channel = pair.connect(Deadline::after_ms(1'000));
  EXPECT_FALSE(channel.ok());
  EXPECT_FALSE(pair.theirs.ok());
}

// An altered byte behind the handshake ends the channel, and no altered message is delivered.
TEST(EncryptedChannels, AnAlteredMessageEndsTheChannel) {
  std::atomic<bool> alters{false};
  Pair pair(TlsMode::always, [&](std::string& bytes, std::size_t) {
    if (alters) bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  });
  auto channel = pair.connect();
  ASSERT_TRUE(channel.ok()) << channel.status().text();
  ASSERT_TRUE(pair.theirs.ok()) << pair.theirs.status().text();
  std::atomic<int> heard{0};
  const auto handler = pair.answerer->channels->handlers().add(
      {7, 2}, {[] { return std::string(); }, [&](std::uint32_t, std::string_view) { ++heard; }});
  std::promise<void> died;
  const auto death = (*pair.theirs)->on_death([&] { died.set_value(); });
  alters = true;
  (*channel)->send_message(7, 2, 1, "altered");
  died.get_future().get();
  EXPECT_EQ(heard, 0);
  EXPECT_THAT((*pair.theirs)->why(), HasSubstr("has not sent"));
}

TEST(EncryptedChannels, RanksThatDisagreeAreRefusedWithBothValues) {
  Process one(TlsMode::off);
  Process two(TlsMode::always);
  auto other = std::async(std::launch::async, [&] {
    return two.channels->connect({one.connector->address(), kPurposeControl, 2, 1, 0, 0, testing::key_of_test(), later()});
  });
  auto mine = one.channels->connect({two.connector->address(), kPurposeControl, 1, 2, 0, 0, testing::key_of_test(), later()});
  auto theirs = other.get();
  EXPECT_FALSE(mine.ok());
  EXPECT_FALSE(theirs.ok());
  const std::string texts = std::string(mine.status().text()) + " | " + std::string(theirs.status().text());
  EXPECT_THAT(texts, ::testing::AllOf(HasSubstr("SETO_TLS"), HasSubstr("off"), HasSubstr("always")));
}

TEST(EncryptedChannels, RanksOfWhichOneHasACertificateAreRefusedWithBothValues) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const CallerAndAnswerer calls(&host, nullptr);
  const char* const caller_has = "is set on the rank that connected and not set on the one that answered";
  const char* const answerer_has = "is not set on the rank that connected and set on the one that answered";
  EXPECT_THAT(calls.failure_at_caller(), HasSubstr(caller_has));
  EXPECT_THAT(calls.failure_at_answerer(), HasSubstr(answerer_has)) << "its probe connects";
  const CallerAndAnswerer answers(nullptr, &host);
  EXPECT_THAT(answers.failure_at_caller(), HasSubstr(answerer_has));
  EXPECT_THAT(answers.failure_at_answerer(), HasSubstr(caller_has)) << "its probe connects";
}

}  // namespace
}  // namespace seto
