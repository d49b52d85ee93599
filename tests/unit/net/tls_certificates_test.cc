// TLS with certificates in place of a key, between two ends whose bytes pass through the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "src/net/tls/auth_channel.h"
#include "src/net/tls/tls_session.h"
#include "tests/support/certificates.h"
#include "tests/support/tls_ends.h"

namespace seto {
namespace {

using ::testing::AllOf;
using testing::CertificateAuthority;
using ::testing::HasSubstr;
using testing::HostFiles;
using testing::Issued;
using testing::put_raw;
using testing::take_raw;
using testing::two_sockets;
using Role = TlsSession::Role;
using Stage = AnswererHandshake::Stage;

constexpr std::time_t kDay = 86'400;

TlsFiles paths_of(const HostFiles& host) { return {host.certificate(), host.key(), host.authorities()}; }
TlsIdentity* identity_of(const HostFiles& host) { return TlsIdentity::of(paths_of(host)).value(); }

// Two sessions, until one of them fails or both have exchanged a message.
struct Sessions {
  Sessions(const TlsTrust& callers, const TlsTrust& answerers, const TlsSession::Options& options = {}) {
    auto [one, other] = two_sockets();
    fds = {std::move(one), std::move(other)};
    caller = TlsSession::create(fds.first.get(), Role::caller, callers, options).value();
    answerer = TlsSession::create(fds.second.get(), Role::answerer, answerers, options).value();
    bool here = false;
    bool there = false;
    for (int round = 0; round < 20 && !(here && there) && callers_text.empty() && answerers_text.empty(); ++round) {
      here = advance(*caller, callers_text);
      there = advance(*answerer, answerers_text);
    }
    // An alert that comes behind the handshake of the caller, which is over sooner.
    char byte = 'x';
    const iovec part{&byte, 1};
    if (here && !there && caller->receive({&part, 1}) < 0) callers_text = caller->why();
    if (!here && callers_text.empty()) static_cast<void>(advance(*caller, callers_text));
    if (!there && answerers_text.empty()) static_cast<void>(advance(*answerer, answerers_text));
    connected = here && there && answerer->send({&part, 1}) == 1 && caller->receive({&part, 1}) == 1;
  }
  static bool advance(TlsSession& one, std::string& text) {
    const auto done = one.advance();
    if (!done.ok()) text = done.status().text();
    return done.ok() && done.value();
  }
  std::pair<PrivateFd, PrivateFd> fds;
  std::unique_ptr<TlsSession> caller;
  std::unique_ptr<TlsSession> answerer;
  std::string callers_text;
  std::string answerers_text;
  bool connected = false;
};

TEST(TlsCertificates, TwoHostsOfOneAuthorityConnect) {
  const CertificateAuthority authority;
  const HostFiles one(authority);
  const HostFiles other(authority);
  const Sessions sessions({Secret(), identity_of(one)}, {Secret(), identity_of(other)});
  EXPECT_TRUE(sessions.connected) << sessions.callers_text << " | " << sessions.answerers_text;
  EXPECT_TRUE(equal(sessions.caller->channel_binding().value(), sessions.answerer->channel_binding().value()));
}

TEST(TlsCertificates, AnAuthorityBetweenIsSentOrKnown) {
  const CertificateAuthority root;
  const auto between = root.below("CA of a site");
  const Issued issued = between->issue();
  const HostFiles sends({issued.certificate + between->pem(), issued.key}, root.pem());
  const HostFiles knows(issued, between->pem());
  EXPECT_TRUE(Sessions({Secret(), identity_of(sends)}, {Secret(), identity_of(sends)}).connected);
  EXPECT_TRUE(Sessions({Secret(), identity_of(knows)}, {Secret(), identity_of(knows)}).connected);
  EXPECT_FALSE(Sessions({Secret(), identity_of(knows)}, {Secret(), identity_of(sends)}).connected) << "the root is not enough";
}

TEST(TlsCertificates, EveryUsualKindOfKeyConnects) {
  const CertificateAuthority authority;
  const HostFiles usual(authority);
  for (const char* const key : {"RSA-2048", "P-384", "ED25519"}) {
    const HostFiles host(authority.issue({.key = key}), authority.pem());
    const Sessions calls({Secret(), identity_of(host)}, {Secret(), identity_of(usual)});
    EXPECT_TRUE(calls.connected) << key << ": " << calls.callers_text << " | " << calls.answerers_text;
    const Sessions answers({Secret(), identity_of(usual)}, {Secret(), identity_of(host)});
    EXPECT_TRUE(answers.connected) << key << ": " << answers.callers_text << " | " << answers.answerers_text;
  }
}

TEST(TlsCertificates, OneThatSignedItselfIsRefused) {
  const CertificateAuthority authority;
  const HostFiles good(authority);
  const HostFiles alone(testing::self_signed({.name = "alone"}), authority.pem());
  const auto unknown = AllOf(HasSubstr("CN=alone"), HasSubstr("which SETO_TLS_CA of this host does not hold"));
  EXPECT_THAT(Sessions({Secret(), identity_of(alone)}, {Secret(), identity_of(good)}).answerers_text, unknown);
  EXPECT_THAT(Sessions({Secret(), identity_of(good)}, {Secret(), identity_of(alone)}).callers_text, unknown);
}

// A host of the organisation signs a certificate with the key of its own.
TEST(TlsCertificates, AHostIsNoAuthority) {
  const CertificateAuthority authority;
  const auto host = authority.below("a host", false);
  const Issued forged = host->issue({.name = "forged"});
  const HostFiles good(authority);
  const HostFiles bad({forged.certificate + host->pem(), forged.key}, authority.pem());
  const Sessions calls({Secret(), identity_of(bad)}, {Secret(), identity_of(good)});
  EXPECT_FALSE(calls.connected);
  EXPECT_THAT(calls.answerers_text, HasSubstr("CN=a host"));
  const Sessions answers({Secret(), identity_of(good)}, {Secret(), identity_of(bad)});
  EXPECT_FALSE(answers.connected);
  EXPECT_THAT(answers.callers_text, HasSubstr("CN=a host"));
}

TEST(TlsCertificates, AnExpiredOneIsRefusedAndNamedAtBothEnds) {
  const CertificateAuthority authority;
  const HostFiles good(authority);
  const HostFiles brief(authority.issue({.name = "brief", .last_day = 5}), authority.pem());
  const TlsSession::Options later{.when = std::time(nullptr) + 10 * kDay};
  const auto expired = AllOf(HasSubstr("the peer's certificate (CN=brief) expired on 20"),
                             HasSubstr("renew SETO_TLS_CERTIFICATE there, or check the clocks"));
  const auto refused = AllOf(HasSubstr("the peer refused the certificate of this host (CN=brief"), HasSubstr("it has expired"),
                             HasSubstr("renew SETO_TLS_CERTIFICATE here"));
  const Sessions at_caller({Secret(), identity_of(brief)}, {Secret(), identity_of(good)}, later);
  EXPECT_FALSE(at_caller.connected);
  EXPECT_THAT(at_caller.answerers_text, expired);
  EXPECT_THAT(at_caller.callers_text, refused);
  const Sessions at_answerer({Secret(), identity_of(good)}, {Secret(), identity_of(brief)}, later);
  EXPECT_FALSE(at_answerer.connected);
  EXPECT_THAT(at_answerer.callers_text, expired);
  EXPECT_THAT(at_answerer.answerers_text, refused);
  const TlsSession::Options before{.when = std::time(nullptr) - 5 * kDay};
  const Sessions early({Secret(), identity_of(good)}, {Secret(), identity_of(good)}, before);
  EXPECT_THAT(early.callers_text, AllOf(HasSubstr("is not valid before 20"), HasSubstr("check the clocks")));
}

TEST(TlsCertificates, AnotherAuthorityIsRefusedAndNamedAtBothEnds) {
  const CertificateAuthority authority("right CA");
  const CertificateAuthority wrong("wrong CA");
  const HostFiles good(authority);
  const HostFiles foreign(wrong.issue(), authority.pem());  // it accepts the certificates of others
  const auto unknown = AllOf(HasSubstr("CN=wrong CA"), HasSubstr("which SETO_TLS_CA of this host does not hold"));
  const auto refused = AllOf(HasSubstr("the peer refused the certificate of this host"), HasSubstr("signed by CN=wrong CA"));
  const Sessions at_caller({Secret(), identity_of(foreign)}, {Secret(), identity_of(good)});
  EXPECT_FALSE(at_caller.connected);
  EXPECT_THAT(at_caller.answerers_text, unknown);
  EXPECT_THAT(at_caller.callers_text, refused);
  const Sessions at_answerer({Secret(), identity_of(good)}, {Secret(), identity_of(foreign)});
  EXPECT_FALSE(at_answerer.connected);
  EXPECT_THAT(at_answerer.callers_text, unknown);
  EXPECT_THAT(at_answerer.answerers_text, refused);
}

// As a CA that pretends to be another one, of the same name.
TEST(TlsCertificates, AnAuthorityOfTheSameNameIsRefused) {
  const CertificateAuthority authority;
  const CertificateAuthority imitation;
  const HostFiles good(authority);
  const HostFiles foreign(imitation.issue(), authority.pem());
  EXPECT_FALSE(Sessions({Secret(), identity_of(foreign)}, {Secret(), identity_of(good)}).connected);
  EXPECT_FALSE(Sessions({Secret(), identity_of(good)}, {Secret(), identity_of(foreign)}).connected);
}

// The key of the job alone opens nothing where certificates are wanted, nor the other way round.
TEST(TlsCertificates, NoneAgainstOneIsRefused) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const Secret key = Secret::of_text("key");
  EXPECT_FALSE(Sessions({key, identity_of(host)}, {key}).connected);
  EXPECT_FALSE(Sessions({key}, {key, identity_of(host)}).connected);
}

TEST(TlsCertificates, ANewFileServesTheNextConnection) {
  const CertificateAuthority authority("former CA");
  const CertificateAuthority next("next CA");
  const HostFiles one(authority.issue({.name = "one"}), authority.pem());
  const HostFiles other(authority.issue({.name = "other"}), authority.pem() + next.pem());
  TlsIdentity* const changing = identity_of(one);
  Sessions before({Secret(), changing}, {Secret(), identity_of(other)});
  ASSERT_TRUE(before.connected);
  const Issued issued = next.issue({.name = "renewed"});
  one.put_authorities(authority.pem() + next.pem());
  one.put_key(issued.key);
  one.put_certificate(issued.certificate);
  const Sessions after({Secret(), changing}, {Secret(), identity_of(other)});
  EXPECT_TRUE(after.connected) << after.callers_text << " | " << after.answerers_text;
  EXPECT_EQ(subject_of(changing->credentials().value()->certificate()), "CN=renewed");
  other.put_authorities(authority.pem());
  const Sessions refused({Secret(), changing}, {Secret(), identity_of(other)});
  EXPECT_THAT(refused.answerers_text, HasSubstr("CN=next CA")) << "so the new one is what is shown";
  char byte = 'y';
  const iovec part{&byte, 1};
  EXPECT_EQ(before.caller->send({&part, 1}), 1);
  EXPECT_EQ(before.answerer->receive({&part, 1}), 1) << "a connection stays";
}

// Both ends of a handshake, which ends as `accepted` or with texts.
struct Meeting {
  Meeting(ChannelTerms callers, const TlsChoice& answerers, const char* answerers_key = "key") {
    auto [called, accepted_fd] = two_sockets();
    CallerChannel caller(std::move(called), Secret::of_text("key"), Claim{}, callers);
    AnswererChannel answerer(std::move(accepted_fd), Token{}, answerers);
    AuthProgress here = AuthProgress::waiting;
    AuthProgress there = AuthProgress::waiting;
    for (int round = 0; round < 20; ++round) {
      if (here == AuthProgress::waiting) here = caller.advance();
      if (there == AuthProgress::waiting) there = answerer.advance();
      if (there != AuthProgress::decide) continue;
      there = AuthProgress::waiting;
      if (answerer.handshake().stage() == Stage::verdict_wanted)
        answerer.accept();
      else
        answerer.set_key(Secret::of_text(answerers_key));
    }
    accepted = here == AuthProgress::over && there == AuthProgress::over;
    callers_text = caller.why().text();
    answerers_text = answerer.why().text();
    proven = answerer.handshake().proven();
    encrypted = accepted && caller.take_stream().encrypted() && answerer.take_stream().encrypted();
  }
  bool accepted = false;
  bool proven = false;
  bool encrypted = false;
  std::string callers_text;
  std::string answerers_text;
};

TEST(TlsCertificates, MembersOfTheJobAreAcceptedOverThem) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const TlsChoice with{TlsMode::sites, identity_of(host)};
  const Meeting meeting({with, true}, with);
  EXPECT_TRUE(meeting.accepted && meeting.encrypted) << meeting.callers_text << " | " << meeting.answerers_text;
  EXPECT_TRUE(Meeting({with, false}, with).accepted) << "within a host";
}

// A certificate does not make a member.
TEST(TlsCertificates, AnotherKeyIsRefusedInSpiteOfThem) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const TlsChoice with{TlsMode::sites, identity_of(host)};
  const Meeting meeting({with, true}, with, "another key");
  EXPECT_FALSE(meeting.accepted);
  EXPECT_FALSE(meeting.proven);
  EXPECT_THAT(meeting.callers_text, HasSubstr("could not prove that it has the secret"));
}

TEST(TlsCertificates, DifferentSettingsAreRefusedWithBothValues) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const TlsChoice with{TlsMode::sites, identity_of(host)};
  for (const bool encrypted : {true, false}) {
    const Meeting only_caller({with, encrypted}, TlsMode::sites);
    EXPECT_FALSE(only_caller.accepted);
    const auto differ = HasSubstr("SETO_TLS_CERTIFICATE is set on the rank that connected and not set on the one that answered");
    EXPECT_THAT(only_caller.callers_text, differ);
    EXPECT_THAT(only_caller.answerers_text, differ);
    const Meeting only_answerer({TlsMode::sites, encrypted}, with);
    EXPECT_FALSE(only_answerer.accepted);
    EXPECT_THAT(only_answerer.callers_text,
                HasSubstr("SETO_TLS_CERTIFICATE is not set on the rank that connected and set on the one that answered"));
  }
}

// Bytes that are no TLS come from a peer that has proved nothing.
TEST(TlsCertificates, GarbageEndsTheHandshake) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  auto [near, far] = two_sockets();
  auto answerer = TlsSession::create(near.get(), Role::answerer, {Secret(), identity_of(host)}).value();
  put_raw(far, "GET / HTTP/1.1\r\nHost: seto\r\n\r\n");
  EXPECT_FALSE(answerer->advance().ok());
  auto [other_near, other_far] = two_sockets();
  auto caller = TlsSession::create(other_near.get(), Role::caller, {Secret(), identity_of(host)}).value();
  ASSERT_TRUE(caller->start().ok());
  EXPECT_EQ(take_raw(other_far).find("host"), std::string::npos) << "a caller shows its certificate only inside TLS";
  put_raw(other_far, std::string(100, '\x16'));
  EXPECT_FALSE(caller->advance().ok());
}

}  // namespace
}  // namespace seto
