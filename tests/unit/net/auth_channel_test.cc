#include "src/net/tls/auth_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "src/net/tcp_socket.h"
#include "tests/support/tls_ends.h"

namespace seto {
namespace {

using ::testing::HasSubstr;
using testing::put_raw;
using testing::take_raw;
using testing::two_sockets;
using Stage = AnswererHandshake::Stage;

constexpr const char* kKey = "key";

struct Scene {
  const char* callers_key = kKey;
  const char* answerers_key = kKey;
  ChannelTerms terms{TlsMode::sites, true};
  TlsMode answerers_mode = TlsMode::sites;
  bool key_known_late = false;
  // Changes the bytes from the caller, and those from the answerer, on their way.
  std::function<std::string(std::string)> there = [](std::string bytes) { return bytes; };
  std::function<std::string(std::string)> back = [](std::string bytes) { return bytes; };
};

// Both ends, whose bytes pass through the test.
class Play {
 public:
  explicit Play(Scene scene) : scene_(std::move(scene)) {
    auto [called, at_caller] = two_sockets();
    auto [accepted, at_answerer] = two_sockets();
    at_caller_ = std::move(at_caller);
    at_answerer_ = std::move(at_answerer);
    caller.emplace(std::move(called), Secret::of_text(scene_.callers_key), Claim{}, scene_.terms);
    answerer.emplace(std::move(accepted), Token{}, scene_.answerers_mode);
    for (int round = 0; round < 20 && !over(); ++round) step(round);
  }
  [[nodiscard]] bool accepted() const { return caller_is == AuthProgress::over && answerer_is == AuthProgress::over; }
  [[nodiscard]] std::string callers_text() const { return std::string(caller->why().text()); }

  std::optional<CallerChannel> caller;
  std::optional<AnswererChannel> answerer;
  AuthProgress caller_is = AuthProgress::waiting;
  AuthProgress answerer_is = AuthProgress::waiting;
  std::string seen;  // on their way

  void relay() {
    std::string bytes = take_raw(at_caller_);
    seen += bytes;
    if (!(bytes = scene_.there(std::move(bytes))).empty()) put_raw(at_answerer_, bytes);
    bytes = take_raw(at_answerer_);
    seen += bytes;
    if (!(bytes = scene_.back(std::move(bytes))).empty()) put_raw(at_caller_, bytes);
  }

 private:
  [[nodiscard]] bool over() const {
    return caller_is != AuthProgress::waiting && (caller_is == AuthProgress::failed || answerer_is == AuthProgress::over);
  }
  void step(int round) {
    if (caller_is == AuthProgress::waiting) caller_is = caller->advance();
    relay();
    if (answerer_is == AuthProgress::waiting) answer(round);
    relay();
  }
  void answer(int round) {
    while (true) {
      if (answerer->handshake().stage() == Stage::key_wanted && scene_.key_known_late && round < 2) {
        answerer_is = answerer->wait_for_key();
        return;
      }
      answerer_is = answerer->advance();
      if (answerer_is != AuthProgress::decide) return;
      if (answerer->handshake().stage() == Stage::verdict_wanted) {
        answerer->accept();
        continue;
      }
      if (scene_.key_known_late && round < 2) continue;
      const Secret key = Secret::of_text(scene_.answerers_key);
      if (answerer->handshake().names(key)) {
        answerer->set_key(key);
        continue;
      }
      answerer->refuse_unknown(AnswererHandshake::MissingKey::this_key);
      answerer->flush();
      answerer_is = AuthProgress::failed;
      return;
    }
  }

  Scene scene_;
  PrivateFd at_caller_;
  PrivateFd at_answerer_;
};

TEST(AuthChannel, AcceptsWithAndWithoutTls) {
  for (const bool encrypted : {false, true}) {
    Scene scene;
    scene.terms.encrypted = encrypted;
    Play play(scene);
    ASSERT_TRUE(play.accepted()) << play.callers_text();
    SecureStream caller = play.caller->take_stream();
    SecureStream answerer = play.answerer->take_stream();
    EXPECT_EQ(caller.encrypted(), encrypted);
    EXPECT_EQ(answerer.encrypted(), encrypted);
    const std::string before = play.seen;
    ASSERT_TRUE(caller.send_whole("attack at dawn"));
    play.relay();
    char bytes[100];
    ASSERT_EQ(answerer.receive(bytes, sizeof bytes), 14);
    EXPECT_EQ(std::string(bytes, 14), "attack at dawn");
    const std::string seen = play.seen.substr(before.size());
    EXPECT_EQ(seen.find("attack") == std::string::npos, encrypted);
  }
}

// The hello is readable, as it must be to find the key. The verdict, which is the first thing that a member says, is not.
TEST(AuthChannel, VerdictIsNotReadable) {
  for (const bool encrypted : {false, true}) {
    Scene scene;
    scene.terms = {TlsMode::always, encrypted};
    Play play(scene);
    EXPECT_THAT(play.callers_text(), HasSubstr("SETO_TLS is"));
    EXPECT_EQ(play.seen.find("SETO_TLS is") == std::string::npos, encrypted);
  }
}

TEST(AuthChannel, AKeyThatBecomesKnownLateIsEnough) {
  for (const bool encrypted : {false, true}) {
    Scene scene;
    scene.terms.encrypted = encrypted;
    scene.key_known_late = true;
    Play play(scene);
    EXPECT_TRUE(play.accepted()) << play.callers_text();
  }
}

TEST(AuthChannel, AnUnknownKeyIsReportedAsWithoutTls) {
  Scene scene;
  scene.answerers_key = "another";
  Play play(scene);
  EXPECT_EQ(play.caller_is, AuthProgress::failed);
  EXPECT_THAT(play.callers_text(), HasSubstr("has no job with this secret"));
  EXPECT_TRUE(play.caller->handshake().key_unknown());
}

TEST(AuthChannel, DifferentModesAreRefusedWithBothNames) {
  Scene scene;
  scene.terms = {TlsMode::off, false};
  Play play(scene);
  EXPECT_EQ(play.caller_is, AuthProgress::failed);
  EXPECT_TRUE(play.caller->handshake().refused());
  EXPECT_THAT(play.callers_text(), HasSubstr("SETO_TLS is off on one rank and sites on another"));
}

// The relay asks for plain bytes in the caller's name.
TEST(AuthChannel, AHelloWhoseTlsWasTakenOutFitsNoProof) {
  Scene scene;
  scene.there = [first = true](std::string bytes) mutable {
    if (!std::exchange(first, false)) return bytes;
    return bytes.substr(0, kHelloSize - 4) + std::string("\0\1\0\0", 4);  // with the mode of the caller
  };
  Play play(scene);
  EXPECT_FALSE(play.accepted());
  EXPECT_THAT(play.callers_text(), HasSubstr("could not prove"));
}

// The relay passes hello and challenge on, and then speaks TLS with each end, for which it has no key.
TEST(AuthChannel, ARelayWithSessionsOfItsOwnGetsNeither) {
  auto [called, at_caller] = two_sockets();
  auto [accepted, at_answerer] = two_sockets();
  CallerChannel caller(std::move(called), Secret::of_text(kKey), Claim{}, {TlsMode::sites, true});
  AnswererChannel answerer(std::move(accepted), Token{}, TlsMode::sites);
  ASSERT_EQ(caller.advance(), AuthProgress::waiting);
  put_raw(at_answerer, take_raw(at_caller).substr(0, kHelloSize));
  ASSERT_EQ(answerer.advance(), AuthProgress::decide);
  answerer.set_key(Secret::of_text(kKey));
  ASSERT_EQ(answerer.advance(), AuthProgress::waiting);
  put_raw(at_caller, take_raw(at_answerer));
  SecureStream to_answerer(std::move(at_answerer));
  ASSERT_TRUE(to_answerer.encrypt(TlsSession::Role::caller, Secret::of_text("a guess")).ok());
  ASSERT_FALSE(to_answerer.advance().value());
  EXPECT_EQ(answerer.advance(), AuthProgress::failed);
  EXPECT_FALSE(answerer.handshake().proven());
  EXPECT_FALSE(to_answerer.advance().ok());
  ASSERT_EQ(caller.advance(), AuthProgress::waiting);
  EXPECT_FALSE(caller.handshake().proven()) << "the challenge alone proves nothing about who is there";
  // In the answerer's place it has a hello that it cannot decrypt, and its own answer is refused.
  std::string answer("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", 11);
  put_raw(at_caller, answer.append(0x7a - 6, 'x'));
  EXPECT_EQ(caller.advance(), AuthProgress::failed);
  EXPECT_FALSE(caller.handshake().proven());
  EXPECT_FALSE(caller.handshake().refused());
}

// Two TLS connections with one key, as a member that relays would have them: the proof of one is worth nothing in the other.
TEST(AuthChannel, AProofIsBoundToItsConnection) {
  const Secret key = Secret::of_text(kKey);
  CallerHandshake caller(key, {}, {}, {TlsMode::sites, true});
  AnswererHandshake answerer({});
  const std::string hello = caller.take_out();
  ASSERT_TRUE(answerer.feed(hello.substr(0, kPreambleSize)).ok());
  ASSERT_TRUE(answerer.feed(hello.substr(kPreambleSize)).ok());
  answerer.set_key(key);
  const std::string challenge = answerer.take_out();
  ASSERT_TRUE(caller.feed(challenge.substr(0, kPreambleSize)).ok());
  ASSERT_TRUE(caller.feed(challenge.substr(kPreambleSize)).ok());
  ASSERT_TRUE(caller.wants_channel());
  EXPECT_EQ(caller.wanted(), 0U);
  EXPECT_TRUE(equal(caller.tls_key(), answerer.tls_key()));
  caller.bind_channel(Secret::of_text("the exporter of one connection"));
  answerer.bind_channel(Secret::of_text("the exporter of another"));
  const Status proof = answerer.feed(caller.take_out());
  EXPECT_THAT(std::string(proof.text()), HasSubstr("could not prove"));
  EXPECT_FALSE(answerer.proven());
}

TEST(AuthChannel, AnAnswererWithoutTheKeyTakesNoEndlessBeginning) {
  auto [called, at_caller] = two_sockets();
  AnswererChannel answerer(std::move(called), Token{}, TlsMode::sites);
  CallerHandshake caller(Secret::of_text(kKey), {}, {}, {TlsMode::sites, true});
  put_raw(at_caller, caller.take_out());
  ASSERT_EQ(answerer.advance(), AuthProgress::decide);
  put_raw(at_caller, std::string(1'000, 'x'));
  EXPECT_EQ(answerer.wait_for_key(), AuthProgress::waiting);
  put_raw(at_caller, std::string(4'000, 'x'));
  EXPECT_EQ(answerer.wait_for_key(), AuthProgress::failed);
  EXPECT_THAT(std::string(answerer.why().text()), HasSubstr("out of turn"));
}

TEST(AuthChannel, WithinAHostOnlyAlwaysEncrypts) {
  auto listener = listen_tcp({parse_host("127.0.0.1").value()}, {}, 1);
  ASSERT_TRUE(listener.ok());
  auto called = connect_tcp(listener->addresses.front(), Deadline::after_ms(10'000));
  ASSERT_TRUE(called.ok());
  EXPECT_FALSE(encrypts(TlsMode::off, called->get()));
  EXPECT_FALSE(encrypts(TlsMode::sites, called->get()));
  EXPECT_TRUE(encrypts(TlsMode::always, called->get()));
}

// As a caller that tries several addresses does, once one of them has answered. No reason is left that would be logged.
TEST(AuthChannel, AnEndDuringTheHandshakeIsNoFailure) {
  auto [called, accepted] = two_sockets();
  AnswererChannel answerer(std::move(accepted), Token{}, TlsMode::sites);
  {
    CallerChannel caller(std::move(called), Secret::of_text(kKey), Claim{}, {TlsMode::sites, true});
    EXPECT_EQ(caller.advance(), AuthProgress::waiting);
    AuthProgress progress = answerer.advance();
    if (progress == AuthProgress::decide) answerer.set_key(Secret::of_text(kKey));
    EXPECT_EQ(answerer.advance(), AuthProgress::waiting) << "for the caller's proof";
  }
  EXPECT_EQ(answerer.advance(), AuthProgress::closed);
  EXPECT_TRUE(answerer.why().ok()) << answerer.why().text();
}

}  // namespace
}  // namespace seto
