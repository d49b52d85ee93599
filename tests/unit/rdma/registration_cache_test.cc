#include "transports/rdma/link/registration_cache.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using ::testing::HasSubstr;
using Use = RegistrationCache::Use;

class Registration : public ::testing::Test {
 protected:
  static constexpr std::size_t kPart = 4'096;

  Registration() {
    fabric.add_ethernet("rxe0", "10.0.0.1");
    verbs = fabric.verbs();
    device = verbs->open_device("rxe0").value();
    make(16 * kPart);
  }
  void make(std::uint64_t limit, const std::string& kernel = "6.1.0-56-amd64") {
    cache =
        std::make_unique<RegistrationCache>(RegistrationCache::Setup{.device = device.get(), .limit = limit, .kernel = kernel});
  }
  std::byte* part(std::size_t number) { return memory.data() + number * kPart; }
  RegistrationCache::Name name(std::size_t first, std::size_t parts) { return cache->name(part(first), parts * kPart); }
  Result<Use> use(std::size_t first, std::size_t parts) { return cache->use(part(first), parts * kPart); }

  FakeFabric fabric{testing::chosen_seed()};
  std::vector<std::byte> memory = std::vector<std::byte>(32 * kPart);
  std::unique_ptr<Verbs> verbs;
  std::unique_ptr<VerbsDevice> device;
  std::unique_ptr<RegistrationCache> cache;
};

TEST_F(Registration, IsMadeOnceForWhatHasAName) {
  name(2, 4);
  EXPECT_EQ(cache->facts().registrations, 0U) << "a name costs nothing";
  const Use whole = use(2, 4).value();
  const Use inside = cache->use(part(3) + 5, 77).value();
  EXPECT_EQ(whole.remote_key(), inside.remote_key());
  EXPECT_EQ(cache->facts().registrations, 1U);
  EXPECT_EQ(cache->facts().registered_bytes, 4 * kPart);
}

TEST_F(Registration, MemoryWithoutANameIsRefused) {
  name(2, 4);
  for (const auto& [first, parts] : {std::pair{0, 1}, {1, 2}, {5, 2}, {6, 1}}) {
    const auto refused = use(static_cast<std::size_t>(first), static_cast<std::size_t>(parts));
    ASSERT_FALSE(refused.ok()) << first;
    EXPECT_THAT(std::string(refused.status().text()), HasSubstr("not within memory of setoCommRegister"));
  }
  EXPECT_FALSE(use(2, 0).ok());
  EXPECT_FALSE(cache->use(part(2), ~std::size_t{0}).ok());
  EXPECT_EQ(cache->facts().registrations, 0U);
}

TEST_F(Registration, StaysUntilTheLastUseEnds) {
  const auto first = name(0, 2);
  std::optional<Use> one(use(0, 1).value()), other(use(1, 1).value());
  EXPECT_FALSE(cache->unname(first)) << "two uses are left";
  EXPECT_FALSE(use(0, 1).ok()) << "it has no name any more";
  one.reset();
  EXPECT_EQ(cache->facts().registered_bytes, 2 * kPart);
  other.reset();
  EXPECT_EQ(cache->facts().registered_bytes, 0U);
  EXPECT_TRUE(cache->unname(first)) << "a second time changes nothing";
}

TEST_F(Registration, OfMemoryThatWasFreedIsNotFoundAgain) {
  const auto first = name(0, 2);
  const std::uint32_t stale = use(0, 2).value().remote_key();
  EXPECT_TRUE(cache->unname(first));
  // The same addresses, as of a later allocation.
  EXPECT_FALSE(use(0, 2).ok());
  name(0, 2);
  EXPECT_NE(use(0, 2).value().remote_key(), stale);
}

TEST_F(Registration, NamesMayOverlap) {
  const auto low = name(0, 4), high = name(2, 4), both = name(0, 6);
  EXPECT_TRUE(use(1, 5).ok());
  EXPECT_TRUE(cache->unname(both));
  EXPECT_FALSE(use(1, 5).ok());
  EXPECT_TRUE(use(1, 3).ok());
  EXPECT_TRUE(cache->unname(low));
  EXPECT_FALSE(use(1, 3).ok());
  EXPECT_TRUE(use(3, 3).ok());
  EXPECT_TRUE(cache->unname(high));
  EXPECT_EQ(cache->facts().named, 0U);
  EXPECT_EQ(cache->facts().registered_bytes, 0U);
}

TEST_F(Registration, TheLeastUsedIsEvictedAtTheLimit) {
  make(4 * kPart);
  for (std::size_t i = 0; i < 3; ++i) name(2 * i, 2);
  (void)use(0, 2).value();
  (void)use(2, 2).value();
  (void)use(0, 2).value();
  (void)use(4, 2).value();
  EXPECT_EQ(cache->facts().evictions, 1U);
  EXPECT_EQ(cache->facts().registered_bytes, 4 * kPart);
  (void)use(0, 2).value();
  EXPECT_EQ(cache->facts().registrations, 3U) << "part 0 was used last, and stayed";
  (void)use(2, 2).value();
  EXPECT_EQ(cache->facts().registrations, 4U);
}

// Two buffers that do not fit together, in turn: to register them again and again would cost more than copies.
TEST_F(Registration, WhatWasUsedOfLateIsNotEvicted) {
  cache = std::make_unique<RegistrationCache>(
      RegistrationCache::Setup{.device = device.get(), .limit = 3 * kPart, .kernel = "6.1.0", .kept_uses = 10});
  name(0, 2);
  name(2, 2);
  name(4, 1);
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(cache->use_if_named(part(0), kPart).has_value());
    EXPECT_FALSE(cache->use_if_named(part(2), kPart).has_value());
  }
  EXPECT_EQ(cache->facts().registrations, 1U);
  for (int turn = 0; turn < 10; ++turn) EXPECT_TRUE(cache->use_if_named(part(4), kPart).has_value());
  EXPECT_EQ(cache->facts().evictions, 0U);
  EXPECT_TRUE(cache->use_if_named(part(2), kPart).has_value()) << "the first one was idle for ten uses";
  EXPECT_EQ(cache->facts().evictions, 1U);
  EXPECT_FALSE(cache->use_if_named(part(5), kPart).has_value()) << "it has no name";
}

TEST_F(Registration, InUseIsNeverEvicted) {
  make(4 * kPart);
  for (std::size_t i = 0; i < 3; ++i) name(2 * i, 2);
  std::optional<Use> one(use(0, 2).value());
  const Use other = use(2, 2).value();
  const auto refused = use(4, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("are in use"));
  one.reset();
  EXPECT_TRUE(use(4, 2).ok()) << "part 0 is idle now";
  name(8, 5);
  EXPECT_THAT(std::string(use(8, 5).status().text()), HasSubstr("more than the"));
}

TEST_F(Registration, ALimitOfLockedMemoryEvictsAndThenRefusesWithItsRemedy) {
  name(0, 2);
  name(2, 2);
  (void)use(0, 2).value();
  fabric.fail(VerbsCall::register_memory, ENOMEM);
  EXPECT_TRUE(use(2, 2).ok()) << "the other registration made room";
  EXPECT_EQ(cache->facts().evictions, 1U);
  const Use held = use(2, 2).value();
  fabric.fail(VerbsCall::register_memory, ENOMEM);
  const auto refused = use(0, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("ulimit -l unlimited"));
  EXPECT_FALSE(use(0, 2).ok()) << "the device would register it now, and is not asked at every message";
}

TEST_F(Registration, ARefusalIsForgottenWhenAnotherRegistrationEnds) {
  const auto first = name(0, 2);
  name(2, 2);
  {
    const Use held = use(0, 2).value();
    fabric.fail(VerbsCall::register_memory, ENOMEM);
    EXPECT_FALSE(use(2, 2).ok());
  }
  EXPECT_FALSE(use(2, 2).ok());
  EXPECT_TRUE(cache->unname(first));
  EXPECT_TRUE(use(2, 2).ok());
}

TEST_F(Registration, OfUnmappedMemoryFailsWithTheReason) {
  name(0, 2);
  fabric.fail(VerbsCall::register_memory, EFAULT);
  const auto refused = use(0, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("ibv_reg_mr"));
  EXPECT_EQ(refused.status().code(), Code::unavailable);
  EXPECT_EQ(cache->facts().registered_bytes, 0U);
}

TEST_F(Registration, NeedsAKernelThatCopiesOnFork) {
  for (const char* const kernel : {"4.19.0", "5.10.0-30-amd64", "5.11", "", "unknown"}) {
    make(16 * kPart, kernel);
    name(0, 1);
    const auto refused = use(0, 1);
    ASSERT_FALSE(refused.ok()) << kernel;
    EXPECT_THAT(std::string(refused.status().text()), HasSubstr("fork"));
  }
  for (const char* const kernel : {"5.12.0", "5.15.0-91-generic", "6.1.0", "10.0"}) {
    make(16 * kPart, kernel);
    name(0, 1);
    EXPECT_TRUE(use(0, 1).ok()) << kernel;
  }
  EXPECT_FALSE(kernel_release().empty());
}

// The limit is of locked memory of the host, and a fork takes no pages of a GPU.
TEST_F(Registration, MemoryOfAGpuIsRegisteredInItsWayAndCountsForNoLimit) {
  make(kPart, "4.19.0");
  const GpuMemory gpu{part(8), 8 * kPart, -1, {}};
  EXPECT_FALSE(cache->is_of_gpu(part(9), 10));
  const auto by_peermem = cache->name_gpu(gpu, GpuWay::peermem);
  EXPECT_TRUE(cache->is_of_gpu(part(9), 10));
  EXPECT_FALSE(cache->is_of_gpu(part(0), 10)) << "it is memory of the host";
  {
    const std::optional<Use> used = cache->use_if_named(part(9), 10);
    ASSERT_TRUE(used.has_value());
    EXPECT_FALSE(cache->unname(by_peermem)) << "it is in use";
  }
  EXPECT_EQ(cache->facts().registered_bytes, 0U);
  EXPECT_EQ(fabric.registered_bytes(), 0U);
  (void)cache->name_gpu(gpu, GpuWay::dma_buf);
  EXPECT_FALSE(cache->use_if_named(part(9), 10).has_value()) << "there is no dma-buf";
  EXPECT_TRUE(cache->is_of_gpu(part(9), 10)) << "nor may it be copied";
}

TEST_F(Registration, AMovedUseEndsOnce) {
  const auto first = name(0, 1);
  name(1, 1);
  Use one = use(0, 1).value();
  Use other = std::move(one);
  other = use(1, 1).value();
  EXPECT_TRUE(cache->unname(first)) << "the use of the first part was replaced";
}

TEST_F(Registration, ThreadsNameAndUseAtOnce) {
  constexpr int kThreads = 4, kRounds = 500;
  make(6 * kPart);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([this, number] {
      std::mt19937_64 random(testing::chosen_seed() + static_cast<std::uint64_t>(number));
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t first = 4 * static_cast<std::size_t>(number), parts = 1 + random() % 3;
        const auto mine = name(first, parts);
        {
          const auto used = use(first, parts);
          EXPECT_TRUE(!used.ok() || used.value().local_key() != 0);
        }
        EXPECT_TRUE(cache->unname(mine));
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(cache->facts().named, 0U);
  EXPECT_EQ(cache->facts().registered_bytes, 0U);
  EXPECT_GT(cache->facts().registrations, 100U);
}

}  // namespace
}  // namespace seto::rdma
