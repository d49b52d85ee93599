#include "src/net/auth_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace seto {
namespace {

using ::testing::HasSubstr;
using Stage = AnswererHandshake::Stage;

Token process(std::uint8_t number) {
  Token token{};
  token.fill(number);
  return token;
}

Claim claim_of_test() {
  Claim claim;
  claim.purpose = 3;
  claim.caller = process(1);
  claim.answerer = process(2);
  claim.caller_context = 11;
  claim.answerer_context = 12;
  claim.attempt = 13;
  claim.index = 14;
  return claim;
}

// The participants, and the changes to the bytes in flight.
struct Scene {
  Secret callers_key = Secret::of_text("key");
  Secret answerers_key = Secret::of_text("key");
  Claim claim = claim_of_test();
  Token answerer = process(2);
  Versions of_caller{};
  Versions of_answerer{};
  Status verdict;
  std::size_t piece = 1000;                  // bytes that arrive at once
  std::optional<std::size_t> flipped_bit{};  // index among all bits that are sent, in order
};

struct Outcome {
  Status caller;
  Status answerer;
  bool accepted = false;
  bool answerer_accepted = false;
  std::size_t bits = 0;
  std::vector<std::string> messages;  // as sent: hello, challenge, proof, verdict
  Claim claim;
  std::string caller_session;
  std::string answerer_session;
};

// Passes the bytes that `from` sent to `to`, at most as many as it wants; the rest is dropped.
template <class To>
Status convey(const std::string& message, To& to, std::size_t piece) {
  for (std::size_t at = 0; at < message.size() && to.wanted() > 0;) {
    const std::size_t size = std::min({piece, to.wanted(), message.size() - at});
    SETO_TRY(to.feed(std::string_view(message).substr(at, size)));
    at += size;
  }
  return {};
}

std::string altered(std::string message, const Scene& scene, Outcome& outcome) {
  outcome.messages.push_back(message);
  const std::size_t first = outcome.bits;
  outcome.bits += message.size() * 8;
  if (!scene.flipped_bit || *scene.flipped_bit < first || *scene.flipped_bit >= outcome.bits) return message;
  const std::size_t bit = *scene.flipped_bit - first;
  message[bit / 8] = static_cast<char>(message[bit / 8] ^ (1 << bit % 8));
  return message;
}

// Like the TcpConnector: the key is used if the hello names it.
void decide_key(AnswererHandshake& answerer, const Secret& key) {
  if (answerer.names(key)) return answerer.set_key(key);
  answerer.refuse_unknown(key.none() ? AnswererHandshake::MissingKey::any_key : AnswererHandshake::MissingKey::this_key);
}

Outcome play(const Scene& scene) {
  Outcome outcome;
  CallerHandshake caller(scene.callers_key, scene.claim, scene.of_caller);
  AnswererHandshake answerer(scene.answerer, scene.of_answerer);
  while (true) {
    const std::string from_caller = caller.take_out();
    if (!from_caller.empty() && answerer.stage() != Stage::over) {
      outcome.answerer = convey(altered(from_caller, scene, outcome), answerer, scene.piece);
      if (answerer.stage() == Stage::key_wanted) decide_key(answerer, scene.answerers_key);
      if (answerer.stage() == Stage::verdict_wanted) {
        outcome.answerer_accepted = scene.verdict.ok();
        outcome.claim = answerer.claim();
        scene.verdict.ok() ? answerer.accept() : answerer.refuse(scene.verdict);
      }
    }
    const std::string from_answerer = answerer.take_out();
    if (from_answerer.empty() || caller.over()) break;
    outcome.caller = convey(altered(from_answerer, scene, outcome), caller, scene.piece);
    if (caller.over()) break;
  }
  outcome.accepted = caller.accepted();
  outcome.caller_session = caller.session().bytes();
  outcome.answerer_session = answerer.session().bytes();
  return outcome;
}

std::string text_of(const Status& status) { return std::string(status.text()); }

TEST(Membership, MembersAuthenticateWithWholeMessagesAndWithPieces) {
  for (const std::size_t piece : {1000U, 1U, 7U}) {
    Scene scene;
    scene.piece = piece;
    const Outcome outcome = play(scene);
    ASSERT_TRUE(outcome.caller.ok()) << outcome.caller.text();
    ASSERT_TRUE(outcome.answerer.ok()) << outcome.answerer.text();
    EXPECT_TRUE(outcome.accepted);
    EXPECT_EQ(outcome.claim, scene.claim);
    EXPECT_EQ(outcome.caller_session, outcome.answerer_session);
    ASSERT_EQ(outcome.messages.size(), 4U);
    EXPECT_EQ(outcome.messages[0].size(), kHelloSize);
    EXPECT_EQ(outcome.messages[1].size(), kChallengeSize);
    EXPECT_EQ(outcome.messages[2].size(), kProofSize);
    EXPECT_EQ(outcome.messages[3].size(), kVerdictSize);
  }
}

TEST(Membership, EachConnectionHasItsOwnSession) { EXPECT_NE(play({}).caller_session, play({}).caller_session); }

TEST(Membership, WithoutANameAnyHolderOfTheKeyIsAccepted) {
  Scene scene;
  scene.claim.answerer = {};
  EXPECT_TRUE(play(scene).accepted);
}

TEST(Membership, ARejectionIsReportedWithItsText) {
  Scene scene;
  scene.verdict = failure(Code::aborted, "rank 3 gave up");
  Outcome outcome = play(scene);
  ASSERT_TRUE(outcome.caller.code() == Code::aborted);
  EXPECT_EQ(text_of(outcome.caller), "rank 3 gave up");
  EXPECT_FALSE(outcome.accepted);
  scene.verdict = failure(Code::unavailable, "%s", std::string(1000, 'x').c_str());
  outcome = play(scene);
  EXPECT_EQ(outcome.caller.code(), Code::remote_error);
  EXPECT_EQ(text_of(outcome.caller), std::string(kVerdictTextLimit, 'x'));
  scene.verdict = failure(Code::aborted, "a\nb\x7f");
  EXPECT_EQ(text_of(play(scene).caller), "a?b?");
}

// For every bit of every message: no end may have a connection that the other end sees differently.
TEST(Membership, EveryFlippedBitIsRejected) {
  const std::size_t bits = play({}).bits;
  ASSERT_EQ(bits, 8 * (kHelloSize + kChallengeSize + kProofSize + kVerdictSize));
  const std::size_t of_verdict = 8 * (kHelloSize + kChallengeSize + kProofSize);
  for (std::size_t bit = 0; bit < bits; ++bit) {
    Scene scene;
    scene.flipped_bit = bit;
    const Outcome outcome = play(scene);
    ASSERT_FALSE(outcome.accepted) << "bit " << bit;
    if (bit < of_verdict) {
      ASSERT_FALSE(outcome.answerer_accepted) << "bit " << bit;
    }
    ASSERT_FALSE(outcome.caller.ok() && outcome.answerer.ok()) << "bit " << bit;
  }
}

TEST(Membership, EveryFlippedBitOfARejectionIsDetected) {
  Scene scene;
  scene.verdict = failure(Code::aborted, "gave up");
  const std::size_t bits = play(scene).bits;
  for (std::size_t bit = bits - 8 * kVerdictSize; bit < bits; ++bit) {
    scene.flipped_bit = bit;
    const Outcome outcome = play(scene);
    ASSERT_EQ(outcome.caller.code(), Code::remote_error) << "bit " << bit;
    ASSERT_FALSE(outcome.accepted);
  }
}

TEST(Membership, ReplayedCallerIsRefused) {
  const Outcome recorded = play({});
  AnswererHandshake answerer(process(2));
  ASSERT_TRUE(convey(recorded.messages[0], answerer, 1000).ok());
  answerer.set_key(Secret::of_text("key"));
  const Status heard = convey(recorded.messages[2], answerer, 1000);
  EXPECT_THAT(text_of(heard), HasSubstr("could not prove that it has the secret"));
  EXPECT_FALSE(answerer.proven());
  EXPECT_EQ(answerer.stage(), Stage::over);
}

TEST(Membership, ReplayedAnswererIsRefused) {
  const Outcome recorded = play({});
  CallerHandshake caller(Secret::of_text("key"), claim_of_test());
  static_cast<void>(caller.take_out());
  const Status heard = convey(recorded.messages[1], caller, 1000);
  EXPECT_THAT(text_of(heard), HasSubstr("could not prove that it has the secret"));
  EXPECT_FALSE(caller.proven());
  EXPECT_TRUE(caller.take_out().empty());
}

TEST(Membership, ReflectedMessagesAreRefused) {
  const Secret key = Secret::of_text("key");
  CallerHandshake mirrored(key, claim_of_test());
  EXPECT_THAT(text_of(convey(mirrored.take_out(), mirrored, 1000)), HasSubstr("wrong order"));

  // Its own hello, answered by its own listener: the named peer is not the one that answers.
  CallerHandshake caller(key, claim_of_test());
  AnswererHandshake own_listener(process(1));
  ASSERT_TRUE(convey(caller.take_out(), own_listener, 1000).ok());
  own_listener.set_key(key);
  EXPECT_THAT(text_of(convey(own_listener.take_out(), caller, 1000)), HasSubstr("another process of this job"));

  // The answerer's proof is sent back to it as the caller's.
  CallerHandshake honest(key, claim_of_test());
  AnswererHandshake answerer(process(2));
  ASSERT_TRUE(convey(honest.take_out(), answerer, 1000).ok());
  answerer.set_key(key);
  const std::string challenge = answerer.take_out();
  EXPECT_FALSE(convey(challenge.substr(kChallengeSize - kProofSize), answerer, 1000).ok());
}

TEST(Membership, AnotherProcessThanTheNamedOneIsRejectedByBoth) {
  Scene scene;
  scene.answerer = process(9);
  const Outcome outcome = play(scene);
  EXPECT_THAT(text_of(outcome.caller), HasSubstr("another process of this job listens there"));
  EXPECT_FALSE(outcome.answerer_accepted);
}

TEST(Membership, WrongMissingAndSuperfluousSecretsHaveDifferentTexts) {
  Scene scene;
  scene.answerers_key = Secret::of_text("another");
  EXPECT_THAT(text_of(play(scene).caller), HasSubstr("has no job with this secret"));
  scene.answerers_key = Secret();
  EXPECT_THAT(text_of(play(scene).caller), HasSubstr("a secret here and none there"));
  scene.answerers_key = Secret::of_text("key");
  scene.callers_key = Secret();
  EXPECT_THAT(text_of(play(scene).caller), HasSubstr("a secret there and none here"));
  scene.answerers_key = Secret();
  EXPECT_TRUE(play(scene).accepted);
}

// In a hello: the id of the key after the preamble and the kind, then the nonce.
constexpr std::size_t kHelloIdAt = kPreambleSize + 4;
constexpr std::size_t kNonceAt = kHelloIdAt + sizeof(HelloId);
constexpr std::size_t kIdAndNonceSize = sizeof(HelloId) + 32;

// An overheard hello names the key, which authenticates neither side.
TEST(Membership, TheIdOfTheKeyIsNotEnough) {
  const Secret key = Secret::of_text("key");
  const Secret guess = Secret::of_text("guess");
  AnswererHandshake answerer(process(2));
  CallerHandshake impostor(guess, claim_of_test());
  const std::string overheard = CallerHandshake(key, claim_of_test()).take_out();
  std::string hello = impostor.take_out();
  hello.replace(kHelloIdAt, kIdAndNonceSize, overheard, kHelloIdAt, kIdAndNonceSize);
  ASSERT_TRUE(convey(hello, answerer, 1000).ok());
  EXPECT_TRUE(answerer.names(key));
  answerer.set_key(key);
  EXPECT_THAT(text_of(convey(answerer.take_out(), impostor, 1000)), HasSubstr("could not prove"));
  EXPECT_FALSE(convey(std::string(kProofSize, 'x'), answerer, 1000).ok());

  CallerHandshake caller(key, claim_of_test());
  AnswererHandshake false_answerer(process(2));
  ASSERT_TRUE(convey(caller.take_out(), false_answerer, 1000).ok());
  false_answerer.set_key(guess);
  EXPECT_THAT(text_of(convey(false_answerer.take_out(), caller, 1000)),
              HasSubstr("could not prove that it has the secret of this job"));
}

TEST(Membership, OtherVersionsAreRejectedAndBothAreNamed) {
  Scene scene;
  scene.of_answerer.library = "9.8.7";
  scene.of_caller.library = "1.2.3";
  Outcome outcome = play(scene);
  EXPECT_THAT(text_of(outcome.caller), HasSubstr("the library there is version 9.8.7, the one here is version 1.2.3"));
  EXPECT_THAT(text_of(outcome.answerer), HasSubstr("the library there is version 1.2.3, the one here is version 9.8.7"));
  EXPECT_FALSE(outcome.accepted || outcome.answerer_accepted);
  scene.of_answerer.protocol = 7;
  outcome = play(scene);
  EXPECT_THAT(text_of(outcome.caller),
              HasSubstr("9.8.7 and speaks protocol 7, the one here is version 1.2.3 and speaks protocol 3"));
  EXPECT_THAT(text_of(outcome.answerer), HasSubstr("1.2.3 and speaks protocol 3, the one here is version 9.8.7"));
  EXPECT_THAT(text_of(outcome.caller), HasSubstr("install the same version"));
}

TEST(Membership, MalformedBytesAreRejected) {
  CallerHandshake caller(Secret::random(), claim_of_test());
  EXPECT_THAT(text_of(convey("HTTP/1.1 400 Bad Request\r\n", caller, 1000)),
              HasSubstr("the peer is not a process of this library"));
  AnswererHandshake answerer(process(2));
  EXPECT_THAT(text_of(convey("GET / HTTP/1.1\r\nHost: a\r\n\r\n", answerer, 1000)), HasSubstr("not the preamble"));
  EXPECT_TRUE(answerer.take_out().empty());  // unauthenticated peers get no answer
}

TEST(Membership, ATruncatedMessageWaitsAndIsNotReadBeyondItsEnd) {
  const Outcome whole = play({});
  AnswererHandshake answerer(process(2));
  EXPECT_EQ(answerer.wanted(), kPreambleSize);
  ASSERT_TRUE(answerer.feed(std::string_view(whole.messages[0]).substr(0, kPreambleSize)).ok());
  EXPECT_EQ(answerer.wanted(), kHelloSize - kPreambleSize);
  ASSERT_TRUE(answerer.feed(std::string_view(whole.messages[0]).substr(kPreambleSize, 100)).ok());
  EXPECT_EQ(answerer.stage(), Stage::hello);
  EXPECT_EQ(answerer.wanted(), kHelloSize - kPreambleSize - 100);
  ASSERT_TRUE(answerer.feed(std::string_view(whole.messages[0]).substr(kPreambleSize + 100)).ok());
  EXPECT_EQ(answerer.stage(), Stage::key_wanted);
  EXPECT_EQ(answerer.wanted(), 0U);
  ASSERT_TRUE(answerer.feed({}).ok());
}

TEST(Membership, AKeyIdIdentifiesAKeyWithoutRevealingIt) {
  const Secret key = Secret::of_text("key");
  EXPECT_EQ(key_id(key), key_id(Secret::of_text("key")));
  EXPECT_NE(key_id(key), key_id(Secret::of_text("kex")));
  EXPECT_EQ(key_id(Secret()), KeyId{});
  const KeyId id = key_id(key);
  EXPECT_EQ(key.bytes().find(std::string_view(reinterpret_cast<const char*>(id.data()), id.size())), std::string_view::npos);
}

// An observer can neither look it up in a table of guessed secrets, nor recognize a job by it, nor use it with another nonce.
TEST(Membership, AHelloShowsNothingThatIsTheSameInTheNextOne) {
  const Secret key = Secret::of_text("key");
  const std::string first = CallerHandshake(key, claim_of_test()).take_out();
  const std::string second = CallerHandshake(key, claim_of_test()).take_out();
  const auto part = [](const std::string& hello, std::size_t at) { return hello.substr(at, sizeof(HelloId)); };
  EXPECT_NE(part(first, kHelloIdAt), part(second, kHelloIdAt));
  const KeyId id = key_id(key);
  const std::string_view in_process(reinterpret_cast<const char*>(id.data()), id.size());
  for (const std::string& hello : {first, second}) {
    EXPECT_EQ(hello.find(in_process), std::string::npos);
    EXPECT_EQ(hello.find(key.bytes()), std::string::npos);
  }
  std::string other_nonce = first;
  other_nonce.replace(kNonceAt, kIdAndNonceSize - sizeof(HelloId), second, kNonceAt, kIdAndNonceSize - sizeof(HelloId));
  AnswererHandshake answerer(process(2));
  ASSERT_TRUE(convey(other_nonce, answerer, 1000).ok());
  EXPECT_FALSE(answerer.names(key));
  EXPECT_FALSE(answerer.names_no_key());
  EXPECT_FALSE(answerer.names(Secret()));
}

}  // namespace
}  // namespace seto
