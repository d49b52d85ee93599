#include "src/net/tls_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "src/base/log.h"
#include "src/net/peer_listener.h"
#include "tests/support/certificates.h"

namespace seto {
namespace {

using ::testing::AllOf;
using testing::CertificateAuthority;
using ::testing::HasSubstr;
using testing::HostFiles;
using testing::Issued;

TlsFiles paths_of(const HostFiles& host) { return {host.certificate(), host.key(), host.authorities()}; }

std::string failure_of(const TlsFiles& files) {
  const auto identity = TlsIdentity::of(files);
  return identity.ok() ? "they are of use" : std::string(identity.status().text());
}

std::string name_in(TlsIdentity& identity) { return subject_of(identity.credentials().value()->certificate()); }

TEST(TlsIdentity, ReadsGoodFilesOnceForTheProcess) {
  const CertificateAuthority authority;
  const HostFiles host(authority.issue({.name = "tokyo-3"}), authority.pem());
  const auto identity = TlsIdentity::of(paths_of(host));
  ASSERT_TRUE(identity.ok()) << identity.status().text();
  EXPECT_EQ(name_in(*identity.value()), "CN=tokyo-3");
  EXPECT_EQ(TlsIdentity::of(paths_of(host)).value(), identity.value());
  EXPECT_EQ(identity.value()->credentials().value(), identity.value()->credentials().value()) << "unchanged files are read once";
  EXPECT_EQ(TlsIdentity::of({}).value(), nullptr);
}

TEST(TlsIdentity, NamesTheSettingsThatAreMissing) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  TlsFiles files = paths_of(host);
  files.key.clear();
  EXPECT_THAT(failure_of(files), AllOf(HasSubstr("SETO_TLS_CERTIFICATE is set, SETO_TLS_KEY is not set and SETO_TLS_CA is set"),
                                       HasSubstr("set all of them, or none")));
  EXPECT_THAT(std::string(NetworkChoice::parse({.interfaces = "", .ports = "", .tls_files = files}).status().text()),
              HasSubstr("SETO_TLS_KEY is not set"));
  files = {"", "", host.authorities()};
  EXPECT_THAT(failure_of(files), HasSubstr("SETO_TLS_CERTIFICATE is not set"));
}

TEST(TlsIdentity, NamesAFileThatCannotBeRead) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  TlsFiles files = paths_of(host);
  files.authorities += ".none";
  EXPECT_THAT(failure_of(files), AllOf(HasSubstr("SETO_TLS_CA='" + files.authorities + "'"), HasSubstr("No such file")));
  files = paths_of(host);
  files.certificate = ::testing::TempDir();
  EXPECT_THAT(failure_of(files), AllOf(HasSubstr("SETO_TLS_CERTIFICATE"), HasSubstr("not a regular file")));
  files = paths_of(host);
  std::swap(files.key, files.certificate);
  EXPECT_THAT(failure_of(files), HasSubstr("holds no certificate"));
}

TEST(TlsIdentity, RefusesFilesWithOtherContents) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  host.put_authorities("no PEM");
  EXPECT_THAT(failure_of(paths_of(host)), AllOf(HasSubstr("SETO_TLS_CA"), HasSubstr("no certificate that can be read")));
  std::string damaged = authority.pem();
  damaged.insert(damaged.size() / 2, "???");
  host.put_authorities(authority.pem() + damaged);
  EXPECT_THAT(failure_of(paths_of(host)), AllOf(HasSubstr("SETO_TLS_CA"), HasSubstr("damaged")));
  host.put_authorities(authority.pem());
  host.put_key("");
  EXPECT_THAT(failure_of(paths_of(host)), AllOf(HasSubstr("SETO_TLS_KEY"), HasSubstr("without a passphrase")));
  host.put_key(authority.issue().key);
  EXPECT_THAT(failure_of(paths_of(host)), HasSubstr("does not belong to the certificate"));
}

TEST(TlsIdentity, RefusesAKeyThatOthersCanRead) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  ASSERT_EQ(chmod(host.key().c_str(), 0644), 0);
  EXPECT_THAT(failure_of(paths_of(host)), AllOf(HasSubstr("SETO_TLS_KEY"), HasSubstr("mode 644"), HasSubstr("chmod 600")));
  ASSERT_EQ(chmod(host.key().c_str(), 0400), 0);
  EXPECT_EQ(failure_of(paths_of(host)), "they are of use");
}

TEST(TlsIdentity, RefusesACertificateThatIsNotValidNow) {
  const CertificateAuthority authority;
  const HostFiles late(authority.issue({.first_day = -20, .last_day = -1}), authority.pem());
  EXPECT_THAT(failure_of(paths_of(late)), AllOf(HasSubstr("expired on 20"), HasSubstr("renew SETO_TLS_CERTIFICATE")));
  const HostFiles early(authority.issue({.first_day = 1}), authority.pem());
  EXPECT_THAT(failure_of(paths_of(early)), AllOf(HasSubstr("not valid before 20"), HasSubstr("check the clock")));
}

TEST(TlsIdentity, RefusesAShortKey) {
  const CertificateAuthority authority;
  const HostFiles host(authority.issue({.key = "RSA-1024"}), authority.pem());
  EXPECT_THAT(failure_of(paths_of(host)), AllOf(HasSubstr("SETO_TLS_KEY"), HasSubstr("too short"), HasSubstr("2048 bits")));
}

// Each host both calls and answers.
TEST(TlsIdentity, RefusesACertificateForOneEndOnly) {
  const CertificateAuthority authority;
  for (const char* const usage : {"serverAuth", "clientAuth"}) {
    const HostFiles host(authority.issue({.usage = usage}), authority.pem());
    EXPECT_THAT(failure_of(paths_of(host)), HasSubstr("extendedKeyUsage = serverAuth, clientAuth"));
  }
}

TEST(TlsIdentity, TakesNewFilesWhenAllFitTogether) {
  const CertificateAuthority authority;
  const HostFiles host(authority.issue({.name = "former"}), authority.pem());
  set_log_level(LogLevel::info);
  const LogCapture log;
  TlsIdentity& identity = *TlsIdentity::of(paths_of(host)).value();
  EXPECT_EQ(log.lines().size(), 1U) << "a certificate that is in force is said at the start";
  set_log_level(LogLevel::warn);
  EXPECT_TRUE(log.contains("serves connections from now on"));
  const Issued next = authority.issue({.name = "next"});
  host.put_certificate(next.certificate);
  EXPECT_EQ(name_in(identity), "CN=former") << "its key is still the former one";
  EXPECT_EQ(name_in(identity), "CN=former");
  EXPECT_TRUE(log.contains("does not belong to the certificate"));
  EXPECT_EQ(log.lines().size(), 2U) << "one warning, although it was looked at twice";
  host.put_key(next.key);
  EXPECT_EQ(name_in(identity), "CN=next");
  const Issued late = authority.issue({.name = "late", .first_day = -20, .last_day = -1});
  host.put_key(late.key);
  host.put_certificate(late.certificate);
  EXPECT_EQ(name_in(identity), "CN=next");
  EXPECT_TRUE(log.contains("expired on"));
}

}  // namespace
}  // namespace seto
