// Host streams that hold functions and waits only: order, positions, waits between streams, handles.

#include "src/core/host_stream/host_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/core/host_stream/stream_table.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kPatienceMs = 20'000;

// A function of a stream that does not end until the test opens the gate.
class Gate final {
 public:
  // Called by the function.
  void pass() {
    std::unique_lock lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [this] { return open_; }));
  }
  // The function is running.
  void await() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [this] { return reached_; }));
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  bool open_ = false;
};

// A stream whose first item runs on another thread until the gate opens.
class HeldStream : public ::testing::Test {
 protected:
  HeldStream() {
    holder_ = std::thread([this] { stream_->enqueue_function([this](const Status&) { gate_.pass(); }); });
    gate_.await();
  }
  ~HeldStream() override {
    gate_.open();
    if (holder_.joinable()) holder_.join();
  }
  void release() {
    gate_.open();
    holder_.join();
  }

  std::shared_ptr<HostStream> stream_ = std::make_shared<HostStream>();
  Gate gate_;
  std::thread holder_;
};

TEST(HostStream, CountsItemsFromOneAndRunsThemAtOnceIfItIsEmpty) {
  const auto stream = std::make_shared<HostStream>();
  EXPECT_EQ(stream->position(), 0U);
  EXPECT_TRUE(stream->wait(0, Deadline::after_ms(0)).ok()) << "nothing to wait for";
  int runs = 0;
  stream->enqueue_function([&](const Status& before) { runs += before.ok() ? 1 : 0; });
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(stream->position(), 1U);
  EXPECT_TRUE(stream->poll(1).ok());
  EXPECT_TRUE(stream->wait(1, Deadline::after_ms(0)).ok());
}

TEST(HostStream, RefusesAPositionThatWasNeverQueued) {
  const auto stream = std::make_shared<HostStream>();
  stream->enqueue_function([](const Status&) {});
  for (const Status& refused : {stream->poll(2), stream->wait(2, Deadline::never()), stream->enqueue_wait(stream, 2)}) {
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.text(), "position: 2 is beyond the last item, 1");
  }
  EXPECT_EQ(stream->position(), 1U) << "a refused wait is no item";
}

TEST(HostStream, DoesNotWaitForItself) {
  const auto stream = std::make_shared<HostStream>();
  stream->enqueue_function([](const Status&) {});
  EXPECT_TRUE(stream->enqueue_wait(stream, 1).ok());
  EXPECT_TRUE(stream->wait(stream->position(), Deadline::after_ms(kPatienceMs)).ok());
}

TEST_F(HeldStream, QueuesWithoutBlockingAndRunsInOrder) {
  std::vector<int> order;
  for (int item = 0; item < 3; ++item) stream_->enqueue_function([&order, item](const Status&) { order.push_back(item); });
  EXPECT_EQ(stream_->position(), 4U);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(stream_->poll(1).code(), Code::in_progress);
  release();
  EXPECT_TRUE(stream_->wait(4, Deadline::after_ms(kPatienceMs)).ok());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(HeldStream, AWaitThatTimesOutNamesThePositionAndChangesNothing) {
  const Status late = stream_->wait(1, Deadline::after_ms(1));
  EXPECT_EQ(late.code(), Code::timeout);
  EXPECT_EQ(late.text(), "the stream did not reach position 1 in time");
  EXPECT_TRUE(stream_->wait(0, Deadline::after_ms(0)).ok()) << "an earlier position is reached";
  release();
  EXPECT_TRUE(stream_->wait(1, Deadline::after_ms(kPatienceMs)).ok());
}

TEST_F(HeldStream, AnotherStreamContinuesWhenThePositionIsReached) {
  const auto follower = std::make_shared<HostStream>();
  int runs = 0;
  EXPECT_TRUE(follower->enqueue_wait(stream_, 1).ok());
  follower->enqueue_function([&](const Status&) { ++runs; });
  EXPECT_EQ(follower->poll(2).code(), Code::in_progress);
  EXPECT_EQ(runs, 0);
  release();
  EXPECT_TRUE(follower->wait(2, Deadline::after_ms(kPatienceMs)).ok());
  EXPECT_EQ(runs, 1);
}

TEST_F(HeldStream, AStreamThatWaitsForAnEarlierPositionIsNotHeld) {
  const auto follower = std::make_shared<HostStream>();
  EXPECT_TRUE(follower->enqueue_wait(stream_, 0).ok());
  EXPECT_TRUE(follower->poll(1).ok());
}

TEST_F(HeldStream, AWaitOverAChainOfStreamsTimesOutToo) {
  std::vector<std::shared_ptr<HostStream>> chain = {stream_};
  for (int link = 0; link < 3; ++link) {
    chain.push_back(std::make_shared<HostStream>());
    ASSERT_TRUE(chain.back()->enqueue_wait(chain[chain.size() - 2], 1).ok());
  }
  EXPECT_EQ(chain.back()->wait(1, Deadline::after_ms(1)).code(), Code::timeout);
  release();
  EXPECT_TRUE(chain.back()->wait(1, Deadline::after_ms(kPatienceMs)).ok());
}

TEST_F(HeldStream, AFollowerThatWasDestroyedIsForgotten) {
  auto follower = std::make_shared<HostStream>();
  ASSERT_TRUE(follower->enqueue_wait(stream_, 1).ok());
  follower.reset();
  release();
  EXPECT_TRUE(stream_->poll(1).ok());
}

TEST_F(HeldStream, ManyThreadsWaitForOnePosition) {
  std::vector<std::thread> waiters;
  std::atomic<int> done{0};
  for (int waiter = 0; waiter < 4; ++waiter)
    waiters.emplace_back([&] { done += stream_->wait(1, Deadline::after_ms(kPatienceMs)).ok() ? 1 : 0; });
  release();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(done, 4);
}

// Streams that wait for positions of each other, queued by several threads: every item runs once, after what it waits for.
TEST(HostStreamsOfThreads, RunEveryItemOnceAfterWhatItWaitsFor) {
  constexpr std::size_t kStreams = 3;
  constexpr int kItems = 200;
  const std::uint64_t seed = testing::chosen_seed();
  std::vector<std::shared_ptr<HostStream>> streams;
  for (std::size_t stream = 0; stream < kStreams; ++stream) streams.push_back(std::make_shared<HostStream>());
  std::array<std::atomic<std::uint64_t>, kStreams> ended{};  // functions that have run, by stream
  std::atomic<int> early{0};
  std::vector<std::thread> threads;
  for (std::size_t own = 0; own < kStreams; ++own)
    threads.emplace_back([&, own] {
      std::mt19937_64 random(seed + own);
      std::uint64_t number = 0;
      for (int item = 0; item < kItems; ++item) {
        const std::size_t other = random() % kStreams;
        // Each item is a wait and a function, so position 2n of a stream is reached when its n-th function has run.
        const std::uint64_t functions = streams[other]->position() / 2;
        EXPECT_TRUE(streams[own]->enqueue_wait(streams[other], other == own ? 0 : 2 * functions).ok());
        if (other == own) streams[own]->enqueue_function([](const Status&) {});  // no wait was queued
        streams[own]->enqueue_function([&, own, other, functions, number](const Status&) {
          if (other != own && ended[other] < functions) ++early;
          if (ended[own].fetch_add(1) != number) ++early;
        });
        ++number;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& stream : streams) EXPECT_TRUE(stream->wait(stream->position(), Deadline::after_ms(kPatienceMs)).ok());
  EXPECT_EQ(early, 0);
  for (const auto& count : ended) EXPECT_EQ(count, static_cast<std::uint64_t>(kItems));
}

TEST(StreamTable, GivesHandlesThatAreNeitherNullNorPointersNorCudasConstants) {
  StreamTable table;
  std::set<StreamTable::Handle> handles;
  for (int stream = 0; stream < 100; ++stream) {
    const StreamTable::Handle handle = table.create().value();
    EXPECT_TRUE(handles.insert(handle).second);
    EXPECT_GT(handle, 2U);
    EXPECT_NE(handle % 8, 0U) << "an aligned pointer";
    EXPECT_TRUE(table.find(handle).ok());
  }
}

TEST(StreamTable, KnowsADestroyedStreamNoMoreAlsoIfItsPlaceIsUsedAgain) {
  StreamTable table;
  const StreamTable::Handle first = table.create().value();
  EXPECT_TRUE(table.destroy(first).ok());
  const StreamTable::Handle second = table.create().value();
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(first).status().code(), Code::invalid_argument);
  EXPECT_EQ(table.destroy(first).code(), Code::invalid_argument) << "destroyed twice";
  EXPECT_TRUE(table.find(second).ok()) << "the other one that has its place lives";
}

TEST(StreamTable, NamesWhatIsNoHandle) {
  StreamTable table;
  const StreamTable::Handle real = table.create().value();
  for (const StreamTable::Handle wrong : {StreamTable::Handle{1}, StreamTable::Handle{2}, StreamTable::Handle{0x7fff'ffff'0000},
                                          real + 1, real + 16, real + (StreamTable::Handle{1} << 32), ~StreamTable::Handle{0}}) {
    const Status refused = table.find(wrong).status();
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_THAT(std::string(refused.text()), HasSubstr("is not a host stream; was it destroyed?"));
  }
}

TEST(StreamTable, KeepsAStreamAliveForItsUsers) {
  StreamTable table;
  const StreamTable::Handle handle = table.create().value();
  const std::shared_ptr<HostStream> found = table.find(handle).value();
  EXPECT_TRUE(table.destroy(handle).ok());
  int runs = 0;
  found->enqueue_function([&](const Status&) { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST(StreamTable, WaitsForQueuedItemsBeforeItForgetsAStream) {
  StreamTable table;
  const StreamTable::Handle handle = table.create().value();
  Gate gate;
  std::atomic<bool> ran{false};
  std::thread holder([&, stream = table.find(handle).value()] {
    stream->enqueue_function([&](const Status&) {
      gate.pass();
      ran = true;
    });
  });
  gate.await();
  std::thread destroyer([&] {
    EXPECT_TRUE(table.destroy(handle).ok());
    EXPECT_TRUE(ran.load());
  });
  gate.open();
  destroyer.join();
  holder.join();
}

TEST(StreamTable, IsUsedByManyThreads) {
  StreamTable table;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const StreamTable::Handle handle = table.create().value();
        EXPECT_TRUE(table.find(handle).ok());
        EXPECT_TRUE(table.destroy(handle).ok());
        EXPECT_FALSE(table.find(handle).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace seto
