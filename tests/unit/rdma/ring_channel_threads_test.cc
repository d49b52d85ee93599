#include <poll.h>

#include <thread>

#include "tests/support/seed.h"
#include "tests/unit/rdma/channel_ends.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;

class ChannelThreads : public ChannelTest {};

constexpr std::uint64_t kRecords = 5'000;
constexpr int kLostMs = 20'000;

// Sends and reads as far as possible. True: something moved.
bool move(ChannelEnd& end, std::uint64_t& sent, std::uint64_t& read) {
  const std::uint64_t before = sent + read;
  const Result<bool> polled = end.completions->poll();
  EXPECT_TRUE(polled.ok());
  std::vector<std::byte> record(1'500);
  for (; sent < kRecords; ++sent) {
    std::memcpy(record.data(), &sent, sizeof sent);
    if (!end.channel->send(std::span(record).first(sizeof sent), std::span(record).subspan(8, sent % 1'400))) break;
  }
  for (auto arrived = end.channel->front(); !arrived.empty(); arrived = end.channel->front()) {
    std::uint64_t number = 0;
    std::memcpy(&number, arrived.data(), sizeof number);
    EXPECT_EQ(number, read);
    EXPECT_EQ(arrived.size(), sizeof number + read % 1'400);
    end.channel->release();
    ++read;
  }
  end.channel->flush();
  EXPECT_FALSE(end.channel->broken()) << end.channel->why().text();
  return sent + read > before || (polled.ok() && polled.value());
}

TEST_F(ChannelThreads, SleepAndAreWoken) {
  FakeFabric fabric(testing::chosen_seed(), FakeFabric::Drive::by_thread);
  const std::shared_ptr<void> at_the_end(nullptr, [this](void*) { close(); });
  fabric.add_ethernet("rxe0", "10.0.0.1");
  fabric.add_ethernet("rxe1", "10.0.0.2");
  open(fabric, 16 << 10, 32);
  std::vector<std::thread> threads;
  for (ChannelEnd& end : ends)
    threads.emplace_back([&end] {
      std::uint64_t sent = 0, read = 0;
      while (sent < kRecords || read < kRecords) {
        if (move(end, sent, read)) continue;
        ASSERT_TRUE(end.completions->arm().ok());
        if (move(end, sent, read)) continue;
        pollfd event{end.completions->descriptor(), POLLIN, 0};
        ASSERT_EQ(poll(&event, 1, kLostMs), 1) << "a wakeup is lost after " << sent << " and " << read;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace seto::rdma
