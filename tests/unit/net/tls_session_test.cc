#include "src/net/tls/tls_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/tls_ends.h"

namespace seto {
namespace {

using testing::two_sockets;
using Role = TlsSession::Role;

Secret key_of(const char* text) { return Secret::of_text(text); }

TEST(TlsSession, ReplacesItsKeyAfterManyRecords) {
  auto [one, other] = two_sockets();
  auto caller = TlsSession::create(one.get(), Role::caller, key_of("key"), {3});
  auto answerer = TlsSession::create(other.get(), Role::answerer, key_of("key"));
  ASSERT_TRUE(caller.ok() && answerer.ok());
  for (bool here = false, there = false; !here || !there;) {
    here = (*caller)->advance().value();
    there = (*answerer)->advance().value();
  }
  for (int message = 0; message < 20; ++message) {
    std::string text = "message " + std::to_string(message);
    const iovec part{text.data(), text.size()};
    ASSERT_EQ((*caller)->send({&part, 1}), static_cast<ssize_t>(text.size()));
    std::string got(100, '\0');
    const iovec room{got.data(), got.size()};
    ASSERT_EQ((*answerer)->receive({&room, 1}), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(got.substr(0, text.size()), text);
  }
}

TEST(TlsSession, UsesOneOfTheTwoSuites) {
  auto [one, other] = two_sockets();
  auto caller = TlsSession::create(one.get(), Role::caller, key_of("key"));
  auto answerer = TlsSession::create(other.get(), Role::answerer, key_of("key"));
  ASSERT_TRUE(caller.ok() && answerer.ok());
  for (bool here = false, there = false; !here || !there;) {
    here = (*caller)->advance().value();
    there = (*answerer)->advance().value();
  }
  EXPECT_THAT(std::string((*caller)->cipher()), ::testing::AnyOf("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"));
  EXPECT_STREQ((*caller)->cipher(), (*answerer)->cipher());
}

}  // namespace
}  // namespace seto
