// SETO_TLS_CERTIFICATE: whole jobs whose hosts show certificates to each other.

#include "tests/support/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;

void use(const HostFiles& host) {
  setenv("SETO_TLS_CERTIFICATE", host.certificate().c_str(), 1);
  setenv("SETO_TLS_KEY", host.key().c_str(), 1);
  setenv("SETO_TLS_CA", host.authorities().c_str(), 1);
}

// Each rank is a host, and everything between them is encrypted.
class CertificatesOfHosts : public ::testing::Test {
 protected:
  CertificatesOfHosts() {
    setenv("SETO_TRANSPORT", "tcp", 1);
    setenv("SETO_TLS", "always", 1);
  }
  ~CertificatesOfHosts() override {
    for (const char* const name : {"SETO_TRANSPORT", "SETO_TLS", "SETO_TLS_CERTIFICATE", "SETO_TLS_KEY", "SETO_TLS_CA"})
      unsetenv(name);
  }
  // No rank gets a communicator, and each is told the reason.
  static void expect_refusal(const std::string& part, const std::function<void(int rank)>& prepare) {
    run_ranks(Kind::processes, kRanks, [&](const Seat& seat) {
      prepare(seat.rank);
      setoConfig_t config = config_of_test();
      setoComm_t comm = nullptr;
      const Answer refused = answer(setoCommInitRankConfig(&comm, seat.ranks, seat.id(), seat.rank, &config));
      EXPECT_NE(refused.code, setoSuccess);
      EXPECT_EQ(comm, nullptr);
      EXPECT_TRUE(refused.says(part)) << refused;
    });
  }
};

TEST_F(CertificatesOfHosts, CarryAJob) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  use(host);
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    EXPECT_TRUE(seat.meet(1));
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Rank 1 is refused before the others join, so that they need not wait long.
TEST_F(CertificatesOfHosts, AreUsedByAllRanksOrByNone) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  run_ranks(Kind::processes, kRanks, [&](const Seat& seat) {
    const setoUniqueId id = seat.id();
    if (seat.rank == 1) use(host);
    setoConfig_t config = config_of_test();
    if (seat.rank != 1) {
      config.initTimeoutMs = 3'000;  // ranks 0 and 2 must meet within it
      EXPECT_TRUE(seat.meet(1));
    }
    setoComm_t comm = nullptr;
    const Answer refused = answer(setoCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config));
    if (seat.rank == 1) {
      EXPECT_TRUE(seat.meet(1));
    }
    EXPECT_NE(refused.code, setoSuccess);
    EXPECT_TRUE(refused.says("SETO_TLS_CERTIFICATE is set on the rank that connected and not set on the one that answered"))
        << refused;
    EXPECT_TRUE(refused.says("SETO_TLS_CA on all ranks, or on none")) << refused;
    EXPECT_TRUE(seat.meet(2)) << "rank 0 serves until all know";
  });
}

// Every rank is told, also those whose connections were accepted.
TEST_F(CertificatesOfHosts, OfAnotherAuthorityAreNamedOnAllRanks) {
  const CertificateAuthority authority("right CA");
  const CertificateAuthority wrong("wrong CA");
  const HostFiles good(authority);
  const HostFiles foreign(wrong.issue(), authority.pem());
  expect_refusal("CN=wrong CA", [&](int rank) { use(rank == 1 ? foreign : good); });
}

TEST_F(CertificatesOfHosts, ThatHaveExpiredAreNamedAtOnce) {
  const CertificateAuthority authority;
  const HostFiles late(authority.issue({.first_day = -20, .last_day = -1}), authority.pem());
  use(late);
  run_ranks(Kind::processes, 1, [](const Seat&) {
    setoUniqueId id;
    const Answer refused = answer(setoGetUniqueId(&id));
    EXPECT_EQ(refused.code, setoInvalidArgument);
    EXPECT_TRUE(refused.says("the certificate of this host expired on")) << refused;
  });
}

}  // namespace
}  // namespace seto::testing
