// One message through a slot stream from one thread to another: the cost of a ring of slots compared with the transfer of a cache
// line.
//
// Two members exchange messages, one operation each, as blocking calls do: copied into the slot, copied out of it, completed. The
// time is that of one message, half an exchange. Before and after each row, flags alone are exchanged: exchange_ns. From it
// follows the label near (the two cores share a cache at the moment), far, or between.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "bench/limit/processes.h"
#include "src/base/check.h"
#include "transports/shm/segment.h"
#include "transports/slots/slot_peer_group.h"

namespace {

using namespace seto;

constexpr std::uint64_t kSegment = std::uint64_t{16} << 20;
constexpr std::uint32_t kPorts = 4;
constexpr int kExchanges = 20'000;
constexpr double kNearBelowNs = 120, kFarAboveNs = 200;  // limits of the EPYC on which the figures were measured

struct Home {
  Home()
      : segment(Segment::create({kSegment}).value()),
        pool(kSegmentPage, kSegment, [this](std::size_t offset, std::size_t size) { return segment.populate(offset, size); }),
        board(pool.reserve(slots::BoardLayout(2, kPorts).size()).value()) {}

  Segment segment;
  slots::Pool pool;
  std::size_t board;
};

// One of the two threads.
class Member {
 public:
  Member(std::array<Home, 2>& homes, std::uint32_t own, std::uint32_t size) : size_(size), source_(size), target_(size) {
    slots::PeerGroupSetup setup;
    setup.own = own;
    setup.ports = kPorts;
    setup.pool = &homes[own].pool;
    for (Home& home : homes) setup.members.push_back({home.segment.data(), kSegment, home.board});
    peer_group_ = slots::SlotPeerGroup::create(std::move(setup)).value();
    const StreamGeometry geometry{size, 2, 1, size};
    const std::uint32_t peer = 1 - own;
    send_ = peer_group_->open_send({own, 0, 0}, std::span(&peer, 1), geometry).value();
    receive_ = peer_group_->open_receive({peer, 0, 0}, geometry).value();
  }

  void send(std::uint64_t operation) {
    std::byte* slot = nullptr;
    for (Pause pause; (slot = send_->acquire(mark_of(operation, 0))) == nullptr;) pause();
    std::memcpy(slot, source_.data(), size_);
    send_->commit(mark_of(operation, 0), size_);
  }
  void receive(std::uint64_t operation) {
    const std::byte* message = nullptr;
    for (Pause pause; (message = receive_->front(mark_of(operation, 0))) == nullptr;) pause();
    std::memcpy(target_.data(), message, size_);
    receive_->release(mark_of(operation, 0));
    benchmark::DoNotOptimize(target_.data());
  }
  void complete(std::uint64_t operation) { peer_group_->complete(operation); }
  [[nodiscard]] bool sound() const { return peer_group_->failure().ok(); }

 private:
  // Yields, because the peer may wait for this core.
  class Pause {
   public:
    void operator()() {
      if (++looks_ < 10'000) return limit::pause_core();
      sched_yield();
    }

   private:
    std::uint32_t looks_ = 0;
  };

  std::uint32_t size_;
  std::vector<std::byte> source_, target_;
  std::unique_ptr<slots::SlotPeerGroup> peer_group_;
  std::unique_ptr<SendStream> send_;
  std::unique_ptr<ReceiveStream> receive_;
};

double median_exchange_ns(limit::Barrier& barrier) {
  std::vector<double> times(kExchanges);
  for (double& each : times) {
    const auto start = limit::Clock::now();
    barrier.arrive_and_wait();
    each = limit::seconds_since(start) * 1e9;
  }
  std::nth_element(times.begin(), times.begin() + kExchanges / 2, times.end());
  return times[kExchanges / 2];
}

const char* state_of(double before_ns, double after_ns) {
  if (before_ns < kNearBelowNs && after_ns < kNearBelowNs) return "near";
  return before_ns > kFarAboveNs && after_ns > kFarAboveNs ? "far" : "between";
}

void message(benchmark::State& state) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  std::array<Home, 2> homes;
  Member own(homes, 0, size);
  alignas(128) limit::BarrierLines lines{};
  std::atomic<std::uint64_t> last{~std::uint64_t{0}};  // the operation after which the other thread stops
  std::thread other([&] {
    limit::Barrier barrier(&lines, 1, 2);
    Member member(homes, 1, size);
    (void)median_exchange_ns(barrier);
    for (std::uint64_t operation = 1; operation <= last.load(std::memory_order_relaxed); ++operation) {
      member.receive(operation);
      member.send(operation);
      member.complete(operation);
    }
    (void)median_exchange_ns(barrier);
    SETO_CHECK(member.sound());
  });
  limit::Barrier barrier(&lines, 0, 2);
  const double before_ns = median_exchange_ns(barrier);
  std::uint64_t operation = 0;
  const auto exchange = [&] {
    own.send(++operation);
    own.receive(operation);
    own.complete(operation);
  };
  const auto start = limit::Clock::now();
  for (auto _ : state) exchange();
  const double seconds = limit::seconds_since(start);
  last.store(operation + 1);  // the other thread sees it before the next message
  exchange();
  const double after_ns = median_exchange_ns(barrier);
  other.join();
  SETO_CHECK(own.sound());
  state.SetLabel(state_of(before_ns, after_ns));
  state.counters["message_ns"] = seconds * 1e9 / static_cast<double>(2 * state.iterations());
  state.counters["exchange_ns"] = (before_ns + after_ns) / 2;
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0));
}

BENCHMARK(message)->Arg(8)->Arg(4 << 10)->Arg(64 << 10)->UseRealTime();

}  // namespace
