#include "tests/support/fake_verbs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/seed.h"

// The rules that the fake enforces, which the other tests rest on.
namespace seto::rdma {
namespace {

using support::FakeFabric;

struct Host {
  std::unique_ptr<VerbsDevice> device;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<QueuePair> pair;
  std::vector<std::byte> memory = std::vector<std::byte>(4'096);
  std::unique_ptr<MemoryRegion> region;
};

class FakeVerbs : public ::testing::Test {
 protected:
  void open(std::uint8_t rnr_retry_count = 7) {
    fabric.add_ethernet("a", "10.0.0.1");
    fabric.add_ethernet("b", "10.0.0.2");
    const auto verbs = fabric.verbs();
    for (std::size_t i = 0; i < 2; ++i) {
      Host& host = hosts[i];
      host.device = verbs->open_device(i == 0 ? "a" : "b").value();
      host.completions = host.device->create_completion_queue(64).value();
      host.pair = host.device->create_queue_pair(*host.completions, {4, 4, 0}).value();
      host.region = host.device->register_memory(host.memory.data(), host.memory.size()).value();
    }
    for (std::size_t i = 0; i < 2; ++i) {
      QueuePairPath path;
      path.gid_index = 3;
      path.remote_gid = gid_of(i == 0 ? "10.0.0.2" : "10.0.0.1");
      path.remote_queue_pair = hosts[1 - i].pair->number();
      path.rnr_retry_count = rnr_retry_count;
      ASSERT_TRUE(hosts[i].pair->prepare(path).ok());
      ASSERT_TRUE(hosts[i].pair->connect(path).ok());
    }
  }
  SendRequest request(SendRequest::Kind kind) {
    SendRequest one;
    one.id = 9;
    one.kind = kind;
    one.signalled = true;
    one.source = hosts[0].memory.data();
    one.size = 2'000;
    one.local_key = hosts[0].region->local_key();
    one.target = reinterpret_cast<std::uint64_t>(hosts[1].memory.data());
    one.remote_key = hosts[1].region->remote_key();
    one.immediate = 1'234;
    return one;
  }
  std::size_t post(const SendRequest& one) { return hosts[0].pair->post(std::span<const SendRequest>(&one, 1)).value(); }
  void post_receive(std::uint32_t size) {
    const ReceiveRequest one{5, hosts[1].memory.data(), size, hosts[1].region->local_key()};
    ASSERT_EQ(hosts[1].pair->post(std::span<const ReceiveRequest>(&one, 1)).value(), 1U);
  }
  std::vector<Completion> completions(std::size_t host) {
    std::array<Completion, 16> all;
    const std::size_t count = hosts[host].completions->poll(all).value();
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  CompletionStatus only_status(std::size_t host) {
    const auto all = completions(host);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? CompletionStatus::general_error : all[0].status;
  }

  FakeFabric fabric{testing::chosen_seed()};
  Host hosts[2];
};

TEST_F(FakeVerbs, AWriteIsValidOnlyAtItsCompletion) {
  open();
  std::fill(hosts[0].memory.begin(), hosts[0].memory.end(), std::byte{7});
  ASSERT_EQ(post(request(SendRequest::Kind::write)), 1U);
  bool was_partly_there = false;
  while (fabric.step()) {
    const auto placed = std::count(hosts[1].memory.begin(), hosts[1].memory.begin() + 2'000, std::byte{7});
    was_partly_there = was_partly_there || (placed > 0 && placed < 2'000);
  }
  EXPECT_TRUE(was_partly_there);
  EXPECT_EQ(std::count(hosts[1].memory.begin(), hosts[1].memory.end(), std::byte{7}), 2'000);
  EXPECT_EQ(only_status(0), CompletionStatus::success);
  EXPECT_TRUE(completions(1).empty()) << "a plain write tells the peer nothing";
}

// Two writes by turns: in memory that is kept in order, nothing of the second one comes before the end of the first one.
TEST_F(FakeVerbs, ALaterWriteMayComeFirstWhereNothingIsKeptInOrder) {
  open();
  std::fill(hosts[0].memory.begin(), hosts[0].memory.end(), std::byte{7});
  for (const bool in_order : {true, false}) {
    VerbsDevice& device = *hosts[1].device;
    auto& memory = hosts[1].memory;
    const auto region = in_order ? device.register_memory(memory.data(), memory.size()).value()
                                 : device.register_unordered(memory.data(), memory.size()).value();
    int overtaken = 0;
    for (int round = 0; round < 20; ++round) {
      std::fill(memory.begin(), memory.end(), std::byte{0});
      for (std::size_t i = 0; i < 2; ++i) {
        post_receive(0);
        SendRequest one = request(SendRequest::Kind::write_with_immediate);
        one.id = i;
        one.target += i * 2'000;
        one.remote_key = region->remote_key();
        ASSERT_EQ(post(one), 1U);
      }
      const auto are_there = [&](std::size_t begin, std::size_t end) {
        const auto from = memory.begin();
        return std::count(from + static_cast<std::ptrdiff_t>(begin), from + static_cast<std::ptrdiff_t>(end), std::byte{7});
      };
      bool overtakes = false;
      while (fabric.step()) overtakes = overtakes || (are_there(2'000, 4'000) > 0 && are_there(0, 2'000) < 2'000);
      overtaken += overtakes ? 1 : 0;
      ASSERT_EQ(are_there(0, 4'000), 4'000);
      const auto sent = completions(0);
      ASSERT_EQ(sent.size(), 2U);
      EXPECT_TRUE(sent[0].id == 0 && sent[1].id == 1) << "completions keep their order";
      EXPECT_EQ(completions(1).size(), 2U);
    }
    EXPECT_EQ(overtaken > 0, !in_order);
  }
}

TEST_F(FakeVerbs, AnImmediateValueUsesUpAReceiveRequest) {
  open();
  ASSERT_EQ(post(request(SendRequest::Kind::write_with_immediate)), 1U);
  fabric.run();
  EXPECT_EQ(fabric.starving(), 1U);
  EXPECT_TRUE(completions(0).empty()) << "it waits without limit";
  post_receive(0);
  fabric.run();
  const auto arrived = completions(1);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].kind, Completion::Kind::written_to);
  EXPECT_EQ(arrived[0].id, 5U);
  EXPECT_EQ(arrived[0].size, 2'000U);
  EXPECT_EQ(arrived[0].immediate, 1'234U);
  EXPECT_EQ(only_status(0), CompletionStatus::success);
}

TEST_F(FakeVerbs, ASendNeedsARequestOfItsSize) {
  open();
  post_receive(4'000);
  ASSERT_EQ(post(request(SendRequest::Kind::send)), 1U);
  fabric.run();
  const auto arrived = completions(1);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].kind, Completion::Kind::received);
  EXPECT_EQ(arrived[0].size, 2'000U);
  EXPECT_EQ(only_status(0), CompletionStatus::success);
  post_receive(1'000);
  ASSERT_EQ(post(request(SendRequest::Kind::send)), 1U);
  fabric.run();
  EXPECT_EQ(only_status(0), CompletionStatus::remote_invalid_request);
}

TEST_F(FakeVerbs, ASenderMayGiveUpOnAPeerThatIsNotReady) {
  open(3);
  ASSERT_EQ(post(request(SendRequest::Kind::write_with_immediate)), 1U);
  fabric.run();
  EXPECT_EQ(only_status(0), CompletionStatus::rnr_retry_exceeded);
}

TEST_F(FakeVerbs, KeysAndRangesAreChecked) {
  for (int which = 0; which < 3; ++which) {
    for (Host& host : hosts) {
      host.region.reset();
      host.pair.reset();
    }
    open();
    SendRequest one = request(SendRequest::Kind::write);
    if (which == 0) one.local_key = 1;
    if (which == 1) one.remote_key = 1;
    if (which == 2) one.target += 3'000;
    ASSERT_EQ(post(one), 1U);
    fabric.run();
    EXPECT_EQ(only_status(0), which == 0 ? CompletionStatus::local_protection_error : CompletionStatus::remote_access_error);
    const auto event = hosts[1].device->next_event();
    ASSERT_EQ(event.has_value(), which != 0);
    if (event.has_value()) {
      EXPECT_EQ(event->kind, AsyncEventKind::queue_pair_access_error);
    }
  }
}

TEST_F(FakeVerbs, AFullQueueAcceptsAPart) {
  open();
  SendRequest quiet = request(SendRequest::Kind::write);
  quiet.signalled = false;
  const std::vector<SendRequest> six(6, quiet);
  EXPECT_EQ(hosts[0].pair->post(std::span<const SendRequest>(six)).value(), 4U);
  fabric.run();
  EXPECT_EQ(post(quiet), 0U) << "requests without a report keep their places";
}

TEST_F(FakeVerbs, AFailedPairFlushesEverything) {
  open();
  post_receive(100);
  ASSERT_EQ(post(request(SendRequest::Kind::write)), 1U);
  hosts[0].pair->fail();
  hosts[1].pair->fail();
  EXPECT_EQ(only_status(0), CompletionStatus::flushed);
  EXPECT_EQ(only_status(1), CompletionStatus::flushed);
  ASSERT_EQ(post(request(SendRequest::Kind::write)), 1U);
  EXPECT_EQ(only_status(0), CompletionStatus::flushed) << "later requests too";
}

TEST_F(FakeVerbs, InlinedBytesAreCopiedWhenTheyArePosted) {
  open();
  SendRequest one = request(SendRequest::Kind::write);
  one.inlined = true;
  one.size = 100;
  one.local_key = 0;
  std::fill(hosts[0].memory.begin(), hosts[0].memory.end(), std::byte{1});
  ASSERT_EQ(post(one), 1U);
  std::fill(hosts[0].memory.begin(), hosts[0].memory.end(), std::byte{2});
  fabric.run();
  EXPECT_EQ(hosts[1].memory[99], std::byte{1});
  one.size = 1'000;
  EXPECT_FALSE(hosts[0].pair->post(std::span<const SendRequest>(&one, 1)).ok());
}

}  // namespace
}  // namespace seto::rdma
