#include "src/bootstrap/rendezvous/incoming_handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

namespace seto {
namespace {

// The server's side of a connection on which that hello has arrived.
struct Answering {
  SeenHellos& seen;
  std::array<PrivateFd, 2> ends = pair_of_sockets();
  IncomingHandshake handshake{std::move(ends[0])};

  explicit Answering(SeenHellos& its_seen) : seen(its_seen) {}

  static std::array<PrivateFd, 2> pair_of_sockets() {
    int fds[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    return {PrivateFd(Fd(fds[0])), PrivateFd(Fd(fds[1]))};
  }
  void take(const Secret& key, const std::string& bytes) {
    EXPECT_EQ(send(ends[1].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    outcome = handshake.advance({key, seen});
  }
  IncomingHandshake::Outcome outcome = IncomingHandshake::Outcome::more;
};

// Connections that have named the key have more places and more time than others.
TEST(IncomingHandshake, AHelloThatIsRepeatedDoesNotCountAsAMembers) {
  const Secret key = Secret::of_text("key");
  SeenHellos seen;
  for (const bool encrypted : {false, true}) {
    const std::string overheard = CallerHandshake(key, {}, {}, {TlsMode::sites, encrypted}).take_out();
    Answering member(seen);
    member.take(key, overheard);
    EXPECT_TRUE(member.handshake.key_known());
    for (int copy = 0; copy < 3; ++copy) {
      Answering repeated(seen);
      repeated.take(key, overheard);
      EXPECT_EQ(repeated.outcome, IncomingHandshake::Outcome::more) << "it is answered";
      EXPECT_FALSE(repeated.handshake.key_known());
      EXPECT_FALSE(repeated.handshake.has_other_key());
    }
  }
  Answering another(seen);
  another.take(key, CallerHandshake(key, {}).take_out());
  EXPECT_TRUE(another.handshake.key_known());
}

TEST(IncomingHandshake, AMemberWhoseHelloWasRepeatedFirstProvesItself) {
  const Secret key = Secret::of_text("key");
  SeenHellos seen;
  CallerHandshake caller(key, {});
  const std::string hello = caller.take_out();
  Answering observer(seen);
  observer.take(key, hello);
  Answering member(seen);
  member.take(key, hello);
  while (caller.wanted() > 0 && member.outcome == IncomingHandshake::Outcome::more) {
    std::string bytes(caller.wanted(), '\0');
    ASSERT_EQ(recv(member.ends[1].get(), bytes.data(), bytes.size(), MSG_DONTWAIT), static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(caller.feed(bytes).ok());
    if (const std::string out = caller.take_out(); !out.empty()) member.take(key, out);
  }
  EXPECT_EQ(member.outcome, IncomingHandshake::Outcome::proven);
  EXPECT_FALSE(member.handshake.key_known());
}

}  // namespace
}  // namespace seto
