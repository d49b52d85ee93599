// The rendezvous over TCP with certificates in place of the job's key for TLS.
#include "tests/support/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/bootstrap/rendezvous/outgoing_connection.h"
#include "tests/support/tries.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using ::testing::AllOf;
using testing::Answer;
using testing::as_threads;
using testing::CertificateAuthority;
using ::testing::HasSubstr;
using testing::HostFiles;
using testing::lacks;
using testing::later;
using testing::text_of;
using testing::with_growing_time;

NetworkChoice network_of(const HostFiles* host) {
  NetworkSettings settings{"lo", "", TlsMode::always};
  if (host != nullptr) settings.tls_files = {host->certificate(), host->key(), host->authorities()};
  return NetworkChoice::parse(settings).value();
}

// A server whose ranks connect over TCP.
struct Served {
  explicit Served(const NetworkChoice& network) {
    auto listeners = Listeners::open(network, Listeners::Reach::network).value();
    UniqueId id{UniqueId::Serves::communicator, random_token(), listeners.address()};
    id.address.socket_name.clear();
    bytes = encode(id);
    server = RendezvousServer::start(std::move(listeners), {rendezvous_key(id.token), id.serves, later(), {}, 100, network.tls})
                 .value();
  }
  [[nodiscard]] Answer join(Rank rank, int size, const NetworkChoice& network, Deadline until = later()) const {
    auto bootstrap = RendezvousBootstrap::join(bytes, rank, size, until, network);
    if (!bootstrap.ok()) return bootstrap.status();
    return bootstrap->all_gather("rank " + std::to_string(rank), until);
  }
  UniqueIdBytes bytes{};
  std::unique_ptr<RendezvousServer> server;
};

// Four ranks, so that some get the result from another one.
TEST(CertificatesRendezvous, RanksWithCertificatesMeet) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const NetworkChoice network = network_of(&host);
  const Served served(network);
  for (const Answer& answer : as_threads(4, [&](Rank rank) { return served.join(rank, 4, network); })) {
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_EQ(answer.value()[3], "rank 3");
  }
}

TEST(CertificatesRendezvous, ARankWithoutOneIsToldBothValues) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  EXPECT_THAT(text_of(Served(network_of(&host)).join(0, 2, network_of(nullptr))),
              HasSubstr("SETO_TLS_CERTIFICATE is not set on the rank that connected and set on the one that answered"));
  EXPECT_THAT(text_of(Served(network_of(nullptr)).join(0, 2, network_of(&host))),
              HasSubstr("SETO_TLS_CERTIFICATE is set on the rank that connected and not set on the one that answered"));
}

TEST(CertificatesRendezvous, OthersAreToldWhyARankIsMissing) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const NetworkChoice with = network_of(&host);
  EXPECT_EQ(with_growing_time([&](std::uint64_t ms) {
              const Served served(with);
              EXPECT_FALSE(served.join(1, 2, network_of(nullptr)).ok());
              const std::string missing = text_of(served.join(0, 2, with, Deadline::after_ms(ms)));
              return lacks(missing, "rank 1 of 2 did not join") + lacks(missing, "that claims to be rank 1 was refused") +
                     lacks(missing,
                           "SETO_TLS_CERTIFICATE is not set on the rank that connected and set on the one that answered");
            }),
            "");
}

// A rank that looks whether a job still runs cannot know whether that job uses certificates.
TEST(CertificatesRendezvous, AQuestionWhetherAServerRunsNeedsNone) {
  const CertificateAuthority authority;
  const HostFiles host(authority);
  const NetworkChoice network = network_of(&host);
  auto listeners = Listeners::open(network, Listeners::Reach::network).value();
  RendezvousAddress where = listeners.address();
  where.socket_name.clear();
  const Secret presence = Secret::of_text("presence");
  const auto server = RendezvousServer::start(std::move(listeners), {Secret::of_text("the job"), UniqueId::Serves::job,
                                                                     Deadline::never(), presence, 100, network.tls})
                          .value();
  OutgoingConnection call(where, presence, Claim{}, TlsMode::always);
  call.stay_plain();
  call.begin(later());
  const Deadline until = later();
  while (!call.over() && !call.proven() && !until.passed()) {
    std::vector<pollfd> entries;
    call.prepare(entries);
    static_cast<void>(poll(entries.data(), entries.size(), 100));
    call.advance();
  }
  EXPECT_TRUE(call.proven());
}

TEST(CertificatesRendezvous, AnotherAuthorityIsNamed) {
  const CertificateAuthority authority("right CA");
  const CertificateAuthority wrong("wrong CA");
  const HostFiles good(authority);
  const HostFiles foreign(wrong.issue(), authority.pem());
  EXPECT_THAT(text_of(Served(network_of(&foreign)).join(0, 2, network_of(&good))),
              AllOf(HasSubstr("CN=wrong CA"), HasSubstr("which SETO_TLS_CA of this host does not hold")));
  EXPECT_THAT(text_of(Served(network_of(&good)).join(0, 2, network_of(&foreign))),
              AllOf(HasSubstr("the peer refused the certificate of this host"), HasSubstr("CN=wrong CA")));
}

}  // namespace
}  // namespace seto
