// Answerers with certificates against callers that are other programs over OpenSSL, with settings that this library never uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <utility>

#include "src/net/tls/tls_session.h"
#include "tests/support/certificates.h"
#include "tests/support/tls_ends.h"

namespace seto {
namespace {

using testing::CertificateAuthority;
using ::testing::HasSubstr;
using testing::HostFiles;
using testing::two_sockets;

int tickets_of_client = 0;

int count_ticket(SSL* /*ssl*/, SSL_SESSION* /*session*/) {
  ++tickets_of_client;
  return 0;
}

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// The public half is that of the context's key, which OpenSSL compares with the certificate. The private half is another one.
Key key_of_a_thief(SSL_CTX* of) {
  EVP_PKEY* const right = SSL_CTX_get0_privatekey(of);
  const Key other(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  unsigned char point[200];
  std::size_t size = 0;
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_octet_string_param(right, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &size), 1);
  EXPECT_EQ(EVP_PKEY_get_bn_param(other.get(), OSSL_PKEY_PARAM_PRIV_KEY, &number), 1);
  const std::unique_ptr<OSSL_PARAM_BLD, decltype(&OSSL_PARAM_BLD_free)> build(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  EXPECT_EQ(OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0), 1);
  EXPECT_EQ(OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, point, size), 1);
  EXPECT_EQ(OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_PRIV_KEY, number), 1);
  const std::unique_ptr<OSSL_PARAM, decltype(&OSSL_PARAM_free)> parts(OSSL_PARAM_BLD_to_param(build.get()), &OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> maker(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr),
                                                                          &EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  EXPECT_EQ(EVP_PKEY_fromdata_init(maker.get()), 1);
  EXPECT_EQ(EVP_PKEY_fromdata(maker.get(), &made, EVP_PKEY_KEYPAIR, parts.get()), 1);
  BN_clear_free(number);
  return {made, &EVP_PKEY_free};
}

// A client that accepts every certificate, and an answerer of this library.
class ForeignClient {
 public:
  explicit ForeignClient(const HostFiles& answerers, const HostFiles* own = nullptr)
      : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), ssl_(nullptr, &SSL_free) {
    SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context_.get(), count_ticket);
    tickets_of_client = 0;
    if (own != nullptr) {
      EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_.get(), own->certificate().c_str()), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), own->key().c_str(), SSL_FILETYPE_PEM), 1);
    }
    fds_ = two_sockets();
    TlsIdentity* const identity = TlsIdentity::of({answerers.certificate(), answerers.key(), answerers.authorities()}).value();
    answerer_ = TlsSession::create(fds_.second.get(), TlsSession::Role::answerer, {Secret(), identity}).value();
  }
  [[nodiscard]] SSL_CTX* context() const { return context_.get(); }
  [[nodiscard]] SSL* ssl() const { return ssl_.get(); }

  // True: the answerer takes the client for a host with a certificate.
  bool connect() {
    ssl_.reset(SSL_new(context_.get()));
    EXPECT_EQ(SSL_set_fd(ssl_.get(), fds_.first.get()), 1);
    for (int round = 0; round < 20; ++round) {
      static_cast<void>(SSL_connect(ssl_.get()));
      const auto done = answerer_->advance();
      if (!done.ok()) why_ = done.status().text();
      if (!done.ok() || done.value()) return done.ok();
    }
    return false;
  }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] TlsSession& answerer() const { return *answerer_; }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::pair<PrivateFd, PrivateFd> fds_;
  std::unique_ptr<TlsSession> answerer_;
  std::string why_;
};

TEST(TlsForeignClient, WithoutACertificateIsRefused) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  ForeignClient client(host);
  EXPECT_FALSE(client.connect());
  EXPECT_THAT(client.why(), HasSubstr("peer did not return a certificate"));
}

// The certificate of a host is public. Its key is not.
TEST(TlsForeignClient, WithTheCertificateOfAHostAndAnotherKeyIsRefused) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  ForeignClient client(host, &host);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(client.context(), key_of_a_thief(client.context()).get()), 1);
  EXPECT_FALSE(client.connect());
  EXPECT_THAT(client.why(), HasSubstr("bad signature"));
}

TEST(TlsForeignClient, OfAnOlderVersionIsRefused) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  ForeignClient client(host, &host);
  ASSERT_EQ(SSL_CTX_set_max_proto_version(client.context(), TLS1_2_VERSION), 1);
  EXPECT_FALSE(client.connect());
  EXPECT_THAT(client.why(), HasSubstr("unsupported protocol"));
}

TEST(TlsForeignClient, GetsNoTicketAndMaySendNoEarlyData) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  ForeignClient client(host, &host);
  ASSERT_TRUE(client.connect()) << client.why();
  char byte = 'x';
  const iovec part{&byte, 1};
  ASSERT_EQ(client.answerer().send({&part, 1}), 1);
  std::size_t got = 0;
  ASSERT_EQ(SSL_read_ex(client.ssl(), &byte, 1, &got), 1) << "what comes before it has been read";
  EXPECT_EQ(tickets_of_client, 0);
  EXPECT_EQ(SSL_SESSION_get_max_early_data(SSL_get0_session(client.ssl())), 0U);
}

}  // namespace
}  // namespace seto
