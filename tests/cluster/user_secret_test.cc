// The secret that the user gives is part of the key, whatever brings the ranks together.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/bootstrap/providers/in_process.h"
#include "src/control/network/connect_request.h"
#include "src/control/network/listen_address.h"
#include "src/core/connect/context.h"
#include "src/core/connect/rank_announcement.h"
#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"
#include "tests/support/communicators.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kMs = 20'000;
constexpr std::size_t kTransports = 2;

// A process that can read a torch Store, and what it sees of an init.
class Eavesdropper final {
 public:
  void read(const std::vector<std::string>& messages) {
    const std::lock_guard lock(mutex_);
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
      const auto one = EndpointAnnouncement::decoded(messages[rank], kTransports);
      if (!one.ok() || one.value().transports[1].address.empty()) continue;
      // The number of sockets is in front of the address of the process.
      const auto listens = decode_listen_address(one.value().transports[1].address.substr(sizeof(std::uint32_t)));
      if (rank == 0 && listens.ok()) listens_ = listens.value();
      if (one.value().secret.size() != Secret::kSize) continue;
      std::array<std::uint8_t, Secret::kSize> bytes{};
      std::copy(one.value().secret.begin(), one.value().secret.end(), bytes.begin());
      proposed_ = Secret(bytes);
    }
  }
  [[nodiscard]] const std::optional<Secret>& proposed() const { return proposed_; }

  // Connects to rank 0 under that key. True: rank 0 knows it.
  [[nodiscard]] bool opens(const Secret& key) const {
    Claim claim;
    claim.answerer = listens_->process;
    claim.purpose = kPurposeProbe;
    CallerHandshake handshake(key, claim);
    const Deadline until = Deadline::after_ms(kMs);
    auto fd = connect_tcp(listens_->candidates.front(), until);
    if (!fd.ok()) return false;
    const std::string hello = handshake.take_out();
    static_cast<void>(send(fd->get(), hello.data(), hello.size(), MSG_NOSIGNAL));
    while (!handshake.proven() && handshake.wanted() > 0 && wait_for(fd->get(), POLLIN, until).ok()) {
      std::array<char, kChallengeSize> bytes{};
      const ssize_t got = recv(fd->get(), bytes.data(), std::min(bytes.size(), handshake.wanted()), MSG_DONTWAIT);
      if (got <= 0 || !handshake.feed({bytes.data(), static_cast<std::size_t>(got)}).ok()) break;
    }
    return handshake.proven();
  }

 private:
  std::mutex mutex_;
  std::optional<ListenAddress> listens_;
  std::optional<Secret> proposed_;
};

// A bootstrap that others can read, or one with a token that others have got hold of.
class ReadBootstrap final : public Bootstrap {
 public:
  ReadBootstrap(std::unique_ptr<Bootstrap> bootstrap, Eavesdropper& reader, const Secret* token)
      : bootstrap_(std::move(bootstrap)), reader_(reader), token_(token) {}
  [[nodiscard]] Rank rank() const override { return bootstrap_->rank(); }
  [[nodiscard]] int size() const override { return bootstrap_->size(); }
  [[nodiscard]] const Secret* secret() const override { return token_; }
  [[nodiscard]] bool readable_by_others() const override { return true; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override {
    auto all = bootstrap_->all_gather(std::move(mine), until);
    if (all.ok() && rank() == 0) reader_.read(*all);
    return all;
  }

 private:
  std::unique_ptr<Bootstrap> bootstrap_;
  Eavesdropper& reader_;
  const Secret* token_;
};

Config with_secret(const std::string& secret) {
  Config config;
  config.init_timeout_ms = config.operation_timeout_ms = kMs;
  config.calibrate = Calibrate::off;
  config.transport = Medium::tcp;
  config.interface = "lo";
  config.secret = secret;
  return config;
}

struct Scene {
  std::vector<Config> configs;  // by rank
  const Secret* token = nullptr;
  Eavesdropper reader;
};

// Makes a communicator and, while it exists, runs `then` on rank 0. Returns the failure of each rank; empty: none.
template <class Then>
std::vector<std::string> connect(Scene& scene, const Then& then) {
  const std::size_t ranks = scene.configs.size();
  auto hub = std::make_shared<InProcessHub>(static_cast<int>(ranks));
  std::vector<std::string> failures(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto inner = std::make_unique<InProcessBootstrap>(hub, static_cast<Rank>(rank));
      ReadBootstrap bootstrap(std::move(inner), scene.reader, scene.token);
      const auto context = Context::create(scene.configs[rank]);
      ASSERT_TRUE(context.ok()) << context.status().text();
      auto made = make_communicator(bootstrap, scene.configs[rank], context.value());
      if (!made.ok()) {
        failures[rank] = made.status().text();
        return;
      }
      EXPECT_TRUE(sum_over(**made).ok());
      if (rank == 0) then();
      EXPECT_TRUE(sum_over(**made).ok()) << "the communicator exists on all ranks until here";
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

// Without a secret the attack succeeds, which shows that it is one.
TEST(UserSecret, WhoReadsTheMessagesOfABootstrapCannotConnect) {
  for (const char* secret : {"", "open sesame"}) {
    Scene scene{std::vector<Config>(2, with_secret(secret)), nullptr, {}};
    std::optional<bool> opened;
    for (const std::string& failure : connect(scene, [&] { opened = scene.reader.opens(scene.reader.proposed().value()); }))
      EXPECT_EQ(failure, "");
    EXPECT_EQ(opened, *secret == '\0');
  }
}

// PMI and other launchers pass an id on in clear.
TEST(UserSecret, WhoHasTheTokenOfAnIdCannotConnect) {
  const Secret token = Secret::random();
  for (const char* secret : {"", "open sesame"}) {
    Scene scene{std::vector<Config>(2, with_secret(secret)), &token, {}};
    std::optional<bool> opened;
    for (const std::string& failure : connect(scene, [&] { opened = scene.reader.opens(token.derive("communicator")); }))
      EXPECT_EQ(failure, "");
    EXPECT_EQ(opened, *secret == '\0');
  }
}

void expect_on_all_ranks(const std::vector<Config>& configs, const std::string& text) {
  Scene scene{configs, nullptr, {}};
  for (const std::string& failure : connect(scene, [] {})) EXPECT_NE(failure.find(text), std::string::npos) << failure;
}

TEST(UserSecret, OfOnlySomeRanksIsReportedByAll) {
  expect_on_all_ranks({with_secret("open sesame"), with_secret("")},
                      "rank 1 has no secret, but rank 0 has one: set SETO_SECRET_FILE or SETO_SECRET for every rank");
  expect_on_all_ranks({with_secret(""), with_secret("a"), with_secret("b")}, "rank 0 has no secret, but ranks 1 and 2 have one");
}

TEST(UserSecret, OfOneRankThatDiffersIsReportedByAll) {
  expect_on_all_ranks({with_secret("open sesame"), with_secret("open sesame"), with_secret("open barley")},
                      "rank 2 has another secret than rank 0: set SETO_SECRET_FILE or SETO_SECRET to the same secret");
}

TEST(UserSecret, AMissingFileOfOneRankIsReportedByAll) {
  Config lacking = with_secret("");
  lacking.secret_file = ::testing::TempDir() + "seto_no_such_secret";
  expect_on_all_ranks({with_secret("open sesame"), lacking}, "rank 1 could not connect: the secret file '" + lacking.secret_file);
}

}  // namespace
}  // namespace seto::testing
