#include "src/net/tls/secure_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"
#include "tests/support/child_process.h"
#include "tests/support/tls_ends.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::put_raw;
using testing::take_raw;
using testing::two_sockets;
using Role = TlsSession::Role;

constexpr std::size_t kHeader = 5;  // of a record

Deadline soon() { return Deadline::after_ms(60'000); }

Secret key_of(const char* text) { return Secret::of_text(text); }

struct Ends {
  SecureStream caller;
  SecureStream answerer;
};

// Both handshakes until they end. A failure of either is returned.
Status shake(SecureStream& caller, SecureStream& answerer) {
  bool one = false;
  bool other = false;
  Status failed;
  for (int round = 0; round < 100 && !(one && other) && failed.ok(); ++round) {
    auto first = caller.advance();
    auto second = answerer.advance();
    if (!first.ok()) failed = first.status();
    if (!second.ok()) failed = second.status();
    one = first.ok() && first.value();
    other = second.ok() && second.value();
  }
  if (failed.ok() && !(one && other)) return failure(Code::timeout, "the handshake does not end");
  return failed;
}

Ends connected(const char* key = "key") {
  auto [one, other] = two_sockets();
  Ends ends{std::move(one), std::move(other)};
  EXPECT_TRUE(ends.caller.encrypt(Role::caller, key_of(key)).ok());
  EXPECT_TRUE(ends.answerer.encrypt(Role::answerer, key_of(key)).ok());
  const Status shaken = shake(ends.caller, ends.answerer);
  EXPECT_TRUE(shaken.ok()) << shaken.text();
  return ends;
}

std::string read_all(SecureStream& from, std::size_t most = 1 << 20) {
  std::string bytes(most, '\0');
  const ssize_t got = from.receive(bytes.data(), bytes.size());
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return bytes;
}

std::string random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& one : bytes) one = static_cast<char>(random());
  return bytes;
}

// Two ends whose bytes pass through the test.
struct Relayed {
  SecureStream caller;
  SecureStream answerer;
  PrivateFd at_caller;
  PrivateFd at_answerer;

  Relayed() {
    auto [one, other] = two_sockets();
    caller = std::move(one);
    at_caller = std::move(other);
    auto [third, fourth] = two_sockets();
    answerer = std::move(third);
    at_answerer = std::move(fourth);
    EXPECT_TRUE(caller.encrypt(Role::caller, key_of("key")).ok());
    EXPECT_TRUE(answerer.encrypt(Role::answerer, key_of("key")).ok());
  }
  void shake() {
    bool one = false;
    bool other = false;
    for (int round = 0; round < 100 && !(one && other); ++round) {
      one = caller.advance().value();
      put_raw(at_answerer, take_raw(at_caller));
      other = answerer.advance().value();
      put_raw(at_caller, take_raw(at_answerer));
    }
    ASSERT_TRUE(one && other);
  }
  // The record in which the caller sends these bytes.
  std::string record_of(std::string_view bytes) {
    EXPECT_EQ(caller.send(bytes), static_cast<ssize_t>(bytes.size()));
    return take_raw(at_caller);
  }
  void expect_refused() {
    char byte = 0;
    errno = 0;
    EXPECT_EQ(answerer.receive(&byte, 1), -1);
    EXPECT_EQ(errno, EBADMSG);
    EXPECT_THAT(answerer.failure_text(EBADMSG), HasSubstr("has not sent"));
    // Nothing is read any more, whatever comes.
    EXPECT_EQ(answerer.receive(&byte, 1), -1);
    EXPECT_EQ(errno, EBADMSG);
  }
};

TEST(SecureStream, PlainItIsTheSocket) {
  auto [one, other] = two_sockets();
  SecureStream stream(std::move(one));
  EXPECT_FALSE(stream.encrypted());
  EXPECT_TRUE(stream.send_whole("hello"));
  EXPECT_EQ(stream.unsent(), 0U);
  EXPECT_FALSE(stream.pending());
  EXPECT_EQ(take_raw(other), "hello");
  put_raw(other, "answer");
  EXPECT_EQ(read_all(stream, 3), "ans");
  std::array<char, 2> first{};
  std::array<char, 5> second{};
  const iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  EXPECT_EQ(stream.receive(parts), 3);
  EXPECT_EQ(std::string(first.data(), 2) + second[0], "wer");
  char byte = 0;
  EXPECT_EQ(stream.receive(&byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  other.close();
  EXPECT_EQ(stream.receive(&byte, 1), 0);
}

TEST(SecureStream, CarriesBytesBothWays) {
  Ends ends = connected();
  EXPECT_TRUE(ends.caller.send_whole("from the caller"));
  EXPECT_EQ(read_all(ends.answerer), "from the caller");
  EXPECT_TRUE(ends.answerer.send_whole("from the answerer"));
  EXPECT_EQ(read_all(ends.caller), "from the answerer");
  char byte = 0;
  EXPECT_EQ(ends.caller.receive(&byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(SecureStream, WorksOverTcp) {
  auto listener = listen_tcp({parse_host("127.0.0.1").value()}, {}, 1);
  ASSERT_TRUE(listener.ok());
  auto called = connect_tcp(listener->addresses.front(), soon());
  ASSERT_TRUE(called.ok());
  ASSERT_TRUE(wait_for(listener->sockets.front().get(), POLLIN, soon()).ok());
  Ends ends{std::move(called).value(), accept_tcp(listener->sockets.front())};
  ASSERT_TRUE(ends.caller.encrypt(Role::caller, key_of("key")).ok());
  ASSERT_TRUE(ends.answerer.encrypt(Role::answerer, key_of("key")).ok());
  const Deadline until = soon();
  for (bool one = false, other = false; !one || !other;) {
    ASSERT_FALSE(until.passed());
    one = ends.caller.advance().value();
    other = ends.answerer.advance().value();
  }
  EXPECT_TRUE(ends.caller.send_whole("x"));
  ASSERT_TRUE(wait_for(ends.answerer.get(), POLLIN, soon()).ok());
  EXPECT_EQ(read_all(ends.answerer), "x");
}

// The caller's first message may follow plain bytes at once, and its start reads nothing: the plain answer stays in the socket.
TEST(SecureStream, BeginsInAPlainConnectionWithoutLosingBytes) {
  auto [one, other] = two_sockets();
  Ends ends{std::move(one), std::move(other)};
  ASSERT_TRUE(ends.caller.send_whole("hello"));
  ASSERT_TRUE(ends.answerer.send_whole("challenge"));
  ASSERT_TRUE(ends.caller.encrypt(Role::caller, key_of("key")).ok());
  ASSERT_TRUE(ends.caller.start().ok());
  EXPECT_EQ(read_all(ends.answerer, 5), "hello");
  ASSERT_TRUE(ends.answerer.encrypt(Role::answerer, key_of("key")).ok());
  ASSERT_FALSE(ends.answerer.advance().value());
  std::string plain(9, '\0');
  ASSERT_EQ(recv(ends.caller.get(), plain.data(), plain.size(), 0), 9);
  EXPECT_EQ(plain, "challenge");
  ASSERT_TRUE(shake(ends.caller, ends.answerer).ok());
}

TEST(SecureStream, NothingThatIsSentCanBeRead) {
  Relayed both;
  both.shake();
  const std::string text = "attack at dawn, attack at dawn";
  const std::string seen = both.record_of(text);
  EXPECT_GT(seen.size(), text.size());
  EXPECT_THAT(seen, Not(HasSubstr("attack")));
}

TEST(SecureStream, RefusesAnotherSecretOnBothSides) {
  auto [one, other] = two_sockets();
  Ends ends{std::move(one), std::move(other)};
  ASSERT_TRUE(ends.caller.encrypt(Role::caller, key_of("key")).ok());
  ASSERT_TRUE(ends.answerer.encrypt(Role::answerer, key_of("another key")).ok());
  ASSERT_TRUE(ends.caller.start().ok());
  auto answered = ends.answerer.advance();
  ASSERT_FALSE(answered.ok());
  EXPECT_THAT(std::string(answered.status().text()), HasSubstr("different secrets"));
  auto called = ends.caller.advance();  // reads the alert
  ASSERT_FALSE(called.ok());
  EXPECT_THAT(std::string(called.status().text()), HasSubstr("different secrets"));
}

TEST(SecureStream, BothEndsDeriveOneBindingAndEachConnectionAnother) {
  Ends first = connected();
  Ends second = connected();
  EXPECT_TRUE(equal(first.caller.channel_binding().value(), first.answerer.channel_binding().value()));
  EXPECT_TRUE(equal(second.caller.channel_binding().value(), second.answerer.channel_binding().value()));
  EXPECT_FALSE(equal(first.caller.channel_binding().value(), second.caller.channel_binding().value()));
}

TEST(SecureStream, RefusesAnAlteredRecord) {
  for (const std::size_t place : {kHeader, kHeader + 7, std::size_t{0}, std::size_t{3}}) {
    Relayed both;
    both.shake();
    std::string record = both.record_of("text");
    record[place] = static_cast<char>(record[place] ^ 0x40);
    put_raw(both.at_answerer, record);
    put_raw(both.at_answerer, std::string(70'000, 'x'));  // a longer length in the header must be refused, too
    both.expect_refused();
  }
}

TEST(SecureStream, RefusesAReplayedRecord) {
  Relayed both;
  both.shake();
  const std::string record = both.record_of("once");
  put_raw(both.at_answerer, record);
  EXPECT_EQ(read_all(both.answerer), "once");
  put_raw(both.at_answerer, record);
  both.expect_refused();
}

TEST(SecureStream, RefusesRecordsInAnotherOrder) {
  Relayed both;
  both.shake();
  const std::string first = both.record_of("first");
  const std::string second = both.record_of("second");
  put_raw(both.at_answerer, second + first);
  both.expect_refused();
}

TEST(SecureStream, RefusesALeftOutRecord) {
  Relayed both;
  both.shake();
  static_cast<void>(both.record_of("first"));
  put_raw(both.at_answerer, both.record_of("second"));
  both.expect_refused();
}

TEST(SecureStream, RefusesARecordOfAnotherConnection) {
  Relayed both;
  Relayed others;
  both.shake();
  others.shake();
  put_raw(both.at_answerer, others.record_of("text"));
  both.expect_refused();
}

TEST(SecureStream, RefusesAnEchoOfItsOwnRecord) {
  Relayed both;
  both.shake();
  put_raw(both.at_caller, both.record_of("text"));
  char byte = 0;
  EXPECT_EQ(both.caller.receive(&byte, 1), -1);
  EXPECT_EQ(errno, EBADMSG);
}

TEST(SecureStream, RefusesGarbageInsteadOfAHandshake) {
  auto [one, other] = two_sockets();
  SecureStream answerer(std::move(one));
  ASSERT_TRUE(answerer.encrypt(Role::answerer, key_of("key")).ok());
  put_raw(other, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(answerer.advance().ok());
}

TEST(SecureStream, CutsOffAHandshakeThatDoesNotEnd) {
  auto [one, other] = two_sockets();
  SecureStream answerer(std::move(one));
  ASSERT_TRUE(answerer.encrypt(Role::answerer, key_of("key")).ok());
  // Records of a hello of 100,000 bytes.
  std::string endless = std::string("\x16\x03\x01\x40\x00\x01\x01\x86\xa0", 9) + std::string(0x4000 - 4, '\0');
  put_raw(other, endless);
  auto first = answerer.advance();
  if (first.ok()) {
    EXPECT_FALSE(first.value());
    put_raw(other, endless);
    first = answerer.advance();
  }
  EXPECT_FALSE(first.ok());
}

TEST(SecureStream, APeerThatClosesIsReportedAfterItsLastBytes) {
  Ends ends = connected();
  EXPECT_TRUE(ends.caller.send_whole("last words"));
  ends.caller.close();
  EXPECT_EQ(read_all(ends.answerer), "last words");
  char byte = 0;
  EXPECT_EQ(ends.answerer.receive(&byte, 1), 0);
  EXPECT_EQ(ends.answerer.receive(&byte, 1), 0);
}

TEST(SecureStream, ATruncatedRecordGivesNoBytes) {
  Relayed both;
  both.shake();
  const std::string record = both.record_of(std::string(1'000, 'x'));
  put_raw(both.at_answerer, std::string_view(record).substr(0, record.size() - 1));
  char byte = 0;
  EXPECT_EQ(both.answerer.receive(&byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  both.at_answerer.close();
  EXPECT_EQ(both.answerer.receive(&byte, 1), 0);
}

TEST(SecureStream, APeerThatClosesDuringTheHandshakeIsAFailure) {
  auto [one, other] = two_sockets();
  SecureStream caller(std::move(one));
  ASSERT_TRUE(caller.encrypt(Role::caller, key_of("key")).ok());
  ASSERT_FALSE(caller.advance().value());
  static_cast<void>(take_raw(other));
  other.close();
  const auto ended = caller.advance();
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(std::string(ended.status().text()), HasSubstr("closed"));
}

TEST(SecureStream, SendingToAPeerThatHasClosedFailsWithoutASignal) {
  Ends ends = connected();
  ends.answerer.close();
  EXPECT_EQ(ends.caller.send("x"), -1);
  EXPECT_EQ(errno, EPIPE);
}

// Large amounts in both directions at once, in pieces of odd sizes, through buffers that are full most of the time.
TEST(SecureStream, LargeTransfersBothWays) {
  Ends ends = connected();
  const std::string there = random_bytes(3'000'001, 1);
  const std::string back = random_bytes(2'500'003, 2);
  std::string got_there;
  std::string got_back;
  std::size_t sent_there = 0;
  std::size_t sent_back = 0;
  std::mt19937 random(3);
  const Deadline until = soon();
  auto step = [&](SecureStream& from, SecureStream& to, const std::string& bytes, std::size_t& sent, std::string& got) {
    const std::string_view rest = std::string_view(bytes).substr(sent);
    const std::string_view first = rest.substr(0, random() % 60);
    const std::string_view second = rest.substr(first.size(), random() % 100'000);
    const iovec parts[] = {{const_cast<char*>(first.data()), first.size()}, {const_cast<char*>(second.data()), second.size()}};
    if (!rest.empty()) {
      const ssize_t taken = from.send(parts);
      ASSERT_TRUE(taken >= 0 || errno == EAGAIN) << from.failure_text(errno);
      sent += static_cast<std::size_t>(std::max<ssize_t>(taken, 0));
    } else {
      static_cast<void>(from.flush());
    }
    EXPECT_LE(from.unsent(), TlsSession::kMostUnsent + 20'000);
    if (random() % 3 == 0) got += read_all(to, 1 + random() % 200'000);
  };
  while (got_there.size() < there.size() || got_back.size() < back.size()) {
    ASSERT_FALSE(until.passed());
    step(ends.caller, ends.answerer, there, sent_there, got_there);
    step(ends.answerer, ends.caller, back, sent_back, got_back);
  }
  EXPECT_EQ(got_there, there);
  EXPECT_EQ(got_back, back);
}

// epoll cannot see what TLS has read already.
TEST(SecureStream, TellsThatBytesArePendingWhereNoEventDoes) {
  Ends ends = connected();
  ASSERT_TRUE(ends.caller.send_whole(std::string(100, 'a') + std::string(100, 'b')));
  ASSERT_TRUE(ends.caller.send_whole(std::string(100, 'c')));
  EXPECT_EQ(read_all(ends.answerer, 100), std::string(100, 'a'));
  pollfd entry{ends.answerer.get(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 0), 0);
  EXPECT_TRUE(ends.answerer.pending());
  EXPECT_EQ(read_all(ends.answerer, 150), std::string(100, 'b') + std::string(50, 'c'));
  EXPECT_TRUE(ends.answerer.pending());
  EXPECT_EQ(read_all(ends.answerer, 100), std::string(50, 'c'));
  EXPECT_FALSE(ends.answerer.pending());
}

// An edge-triggered event is told once: reading until EAGAIN must find everything, the end of the stream included.
TEST(SecureStream, ReadingUntilEagainFindsTheEndToo) {
  Ends ends = connected();
  const Fd events(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{EPOLLIN | EPOLLRDHUP | EPOLLET, {}};
  ASSERT_EQ(epoll_ctl(events.get(), EPOLL_CTL_ADD, ends.answerer.get(), &event), 0);
  ASSERT_TRUE(ends.caller.send_whole("bytes"));
  ends.caller.close();
  ASSERT_EQ(epoll_wait(events.get(), &event, 1, 60'000), 1);
  EXPECT_EQ(read_all(ends.answerer), "bytes");
  char byte = 0;
  EXPECT_EQ(ends.answerer.receive(&byte, 1), 0);
}

// The child has no socket, and destroys its copy without a call of OpenSSL, whose locks may be held for ever there. It can make
// connections of its own.
TEST(SecureStream, AForkedChildLosesItAndCanMakeAnother) {
  Ends ends = connected();
  ChildProcess child([&] {
    {
      const Ends lost = std::move(ends);
      if (lost.caller.get() >= 0 && fcntl(lost.caller.get(), F_GETFD) >= 0) return false;
    }
    Ends own = connected();
    return own.caller.send_whole("x") && read_all(own.answerer) == "x";
  });
  EXPECT_TRUE(child.wait());
  EXPECT_TRUE(ends.caller.send_whole("still here"));
  EXPECT_EQ(read_all(ends.answerer), "still here");
}

}  // namespace
}  // namespace seto
