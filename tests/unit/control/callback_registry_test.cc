// Callbacks that other threads add and remove while one thread runs them.

#include "src/control/callback_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/control/network/reached_addresses.h"

namespace seto {
namespace {

using Registry = CallbackRegistry<int, std::function<void()>>;

bool run(Registry& registry, int key) {
  return registry.run(key, [](const std::function<void()>& callback) { callback(); });
}

void await(const std::atomic<bool>& flag) {
  const Deadline until = Deadline::after_ms(20'000);
  while (!flag && !until.passed()) std::this_thread::yield();
  EXPECT_TRUE(flag) << "not within 20 s";
}

TEST(CallbackRegistry, RunsTheCallbackOfAKeyUntilItIsRemoved) {
  Registry registry;
  int runs = 0;
  EXPECT_FALSE(run(registry, 1));
  EXPECT_TRUE(registry.add(1, [&] { ++runs; }));
  EXPECT_TRUE(run(registry, 1));
  EXPECT_TRUE(run(registry, 1));
  EXPECT_FALSE(run(registry, 2));
  registry.remove(1);
  EXPECT_FALSE(run(registry, 1));
  EXPECT_EQ(runs, 2);
}

TEST(CallbackRegistry, KeepsTheFirstCallbackOfAKey) {
  Registry registry;
  std::string runs;
  EXPECT_TRUE(registry.add(1, [&] { runs += 'a'; }));
  EXPECT_FALSE(registry.add(1, [&] { runs += 'b'; }));
  EXPECT_TRUE(run(registry, 1));
  registry.remove(1);
  EXPECT_TRUE(registry.add(1, [&] { runs += 'c'; }));
  EXPECT_TRUE(run(registry, 1));
  EXPECT_EQ(runs, "ac");
}

TEST(CallbackRegistry, RemovesWhatIsNotThereWithoutWaiting) {
  Registry registry;
  registry.remove(1);
  EXPECT_TRUE(registry.keys().empty());
}

TEST(CallbackRegistry, ListsItsKeysInOrder) {
  Registry registry;
  for (const int key : {3, 1, 2}) EXPECT_TRUE(registry.add(key, [] {}));
  registry.remove(2);
  EXPECT_EQ(registry.keys(), (std::vector<int>{1, 3}));
}

TEST(CallbackRegistry, ACallbackMayAddAndRemoveOthersAndItself) {
  Registry registry;
  int runs = 0;
  EXPECT_TRUE(registry.add(1, [&] {
    registry.remove(1);
    registry.remove(2);
    EXPECT_TRUE(registry.add(3, [&] { ++runs; }));
  }));
  EXPECT_TRUE(registry.add(2, [] {}));
  EXPECT_TRUE(run(registry, 1));
  EXPECT_EQ(registry.keys(), std::vector<int>{3});
  EXPECT_TRUE(run(registry, 3));
  EXPECT_EQ(runs, 1);
}

// The destructor of what a callback owns may use the registry, so no lock is held while it runs.
TEST(CallbackRegistry, WhatACallbackOwnsMayUseTheRegistryInItsDestructor) {
  Registry registry;
  struct Owned {
    Registry& registry;
    ~Owned() { registry.remove(2); }
  };
  EXPECT_TRUE(registry.add(2, [] {}));
  EXPECT_TRUE(registry.add(1, [owned = std::make_shared<Owned>(registry)] { EXPECT_NE(owned, nullptr); }));
  registry.remove(1);
  EXPECT_TRUE(registry.keys().empty());
}

TEST(CallbackRegistry, RemovingWaitsForARunningCallbackAndForWhatItOwns) {
  Registry registry;
  std::atomic<bool> running{false};
  std::atomic<bool> removing{false};
  std::atomic<bool> destroyed{false};
  struct Owned {
    std::atomic<bool>& destroyed;
    ~Owned() { destroyed = true; }
  };
  EXPECT_TRUE(registry.add(1, [&, owned = std::make_shared<Owned>(destroyed)] {
    running = true;
    await(removing);
    EXPECT_FALSE(destroyed) << "it is still running";
  }));
  std::thread runner([&] { EXPECT_TRUE(run(registry, 1)); });
  await(running);
  std::thread remover([&] {
    removing = true;
    registry.remove(1);
    EXPECT_TRUE(destroyed);
  });
  remover.join();
  runner.join();
}

TEST(CallbackRegistry, RemovingAnotherKeyDoesNotWaitForTheRunningOne) {
  Registry registry;
  std::atomic<bool> running{false};
  std::atomic<bool> removed{false};
  EXPECT_TRUE(registry.add(1, [&] {
    running = true;
    await(removed);
  }));
  EXPECT_TRUE(registry.add(2, [] {}));
  std::thread runner([&] { EXPECT_TRUE(run(registry, 1)); });
  await(running);
  registry.remove(2);
  removed = true;
  runner.join();
}

TEST(CallbackRegistry, NoCallbackRunsAfterItsRemovalByAnyThread) {
  constexpr int kKeys = 4;
  Registry registry;
  std::atomic<bool> over{false};
  std::thread runner([&] {
    while (!over)
      for (int key = 0; key < kKeys; ++key) (void)run(registry, key);
  });
  std::vector<std::thread> threads;
  for (int key = 0; key < kKeys; ++key)
    threads.emplace_back([&, key] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<bool> alive{true};
        EXPECT_TRUE(registry.add(key, [&alive] { EXPECT_TRUE(alive); }));
        if (round % 2 == 0) std::this_thread::yield();
        registry.remove(key);
        alive = false;
      }
    });
  for (std::thread& thread : threads) thread.join();
  over = true;
  runner.join();
}

Token process(std::uint8_t number) {
  Token token{};
  token[0] = number;
  return token;
}

SocketAddress at(const char* text) { return parse_address(text).value(); }

TEST(ReachedAddresses, TryTheAddressThatWorkedFirstAndEachOnce) {
  ReachedAddresses reached;
  const ListenAddress remote{process(1), "0.1.0", {at("10.0.0.1:80"), at("10.0.0.2:80"), at("10.0.0.1:80")}};
  EXPECT_EQ(reached.addresses_of(remote).value(), (std::vector{at("10.0.0.1:80"), at("10.0.0.2:80")}));
  reached.remember(process(1), at("10.0.0.2:80"));
  EXPECT_EQ(reached.addresses_of(remote).value(), (std::vector{at("10.0.0.2:80"), at("10.0.0.1:80")}));
  reached.remember(process(1), at("192.168.0.7:80"));
  EXPECT_EQ(reached.addresses_of(remote).value().front(), at("192.168.0.7:80")) << "the latest";
  EXPECT_EQ(reached.addresses_of(remote).value().size(), 3U);
}

TEST(ReachedAddresses, BelongToOneProcess) {
  ReachedAddresses reached;
  reached.remember(process(1), at("10.0.0.1:80"));
  EXPECT_FALSE(reached.found(process(2)).has_value());
  EXPECT_EQ(reached.found(process(1)), at("10.0.0.1:80"));
}

TEST(ReachedAddresses, AreDroppedWhenThereAreTooMany) {
  ReachedAddresses reached;
  Token token{};
  for (std::size_t number = 0; number < ReachedAddresses::kLimit; ++number) {
    std::memcpy(token.data(), &number, sizeof number);
    reached.remember(token, at("10.0.0.1:80"));
  }
  EXPECT_TRUE(reached.found(Token{}).has_value());
  reached.remember(process(1), at("10.0.0.1:80"));
  reached.remember(random_token(), at("10.0.0.1:80"));
  EXPECT_FALSE(reached.found(Token{}).has_value());
}

TEST(ReachedAddresses, OfAProcessWithoutAnyNameTheRemedy) {
  const auto none = ReachedAddresses().addresses_of({process(1), "0.1.0", {}});
  EXPECT_EQ(none.status().code(), Code::remote_error);
  EXPECT_NE(none.status().text().find("set SETO_INTERFACE there, or here"), std::string_view::npos);
}

}  // namespace
}  // namespace seto
