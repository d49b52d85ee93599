#include "src/core/device_memory/device_costs.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "src/base/log.h"
#include "src/core/call/ids.h"
#include "src/core/communicator/communicator.h"
#include "src/engine/device/device_channels.h"

namespace seto {
namespace {

// Within one GPU: its memory reads and writes each byte.
constexpr GpuPairCost kWithinAGpu{GpuMedium::memory, 2e-6, 500e9, 0};
// Where the topology says nothing: the payload of 16 lanes of the fourth generation of PCI Express, and a hop that lies between
// those of GPU links and PCI Express.
constexpr GpuPairCost kUnknownPair{GpuMedium::unknown, 2e-6, 24e9, 0};
constexpr double kCodecBytesPerSecond = 500e9;  // a pass that encodes is bound by memory, too
constexpr double kMessageSeconds = 0.05e-6;     // each thread of a block stores or polls the flag of another peer

constexpr std::uint64_t kShort = 8;  // bytes
constexpr std::uint64_t kLong[] = {64 << 10, DeviceCostMeasurement::kLongest};
constexpr int kCalls = 4;  // that are timed together, after one that binds and warms up
// Slower ones are no links of GPUs: something else took the time.
constexpr double kLongestHopSeconds = 100e-6;
constexpr double kSlowestBytesPerSecond = 1e9;
constexpr double kMostSeconds = 2e-3;           // of a call, for a longer one to be measured
constexpr std::uint64_t kStopCallsMs = 10'000;  // for kernels to end after they were stopped

template <class Holds>
bool any_pair(std::span<const RankStatement> statements, Holds holds) {
  for (std::size_t one = 0; one < statements.size(); ++one)
    for (std::size_t other = 0; other < one; ++other)
      if (holds(statements[one], statements[other])) return true;
  return false;
}

bool share_a_gpu(const RankStatement& one, const RankStatement& other) { return text_of(one.gpu) == text_of(other.gpu); }

std::string name_of(const GpuPairCost& pair) {
  switch (pair.medium) {
    case GpuMedium::links:
      return std::to_string(pair.links) + (pair.links == 1 ? " GPU link" : " GPU links");
    case GpuMedium::pci:
      return "PCI Express";
    case GpuMedium::memory:
      return "the memory of one GPU";
    case GpuMedium::unknown:
      break;
  }
  return "an unknown path";
}

}  // namespace

GpuPairCost slowest_pair(const Tiers& tiers, std::span<const RankStatement> statements, const RelayedPairs& relayed) {
  std::optional<GpuPairCost> slowest;
  double longest_hop = 0;
  for (std::size_t one = 0; one < statements.size(); ++one)
    for (std::size_t other = 0; other < one; ++other) {
      if (tiers.kind(tiers.between(static_cast<Rank>(one), static_cast<Rank>(other))) != TierKind::node) continue;
      const RankStatement& left = statements[one];
      const RankStatement& right = statements[other];
      const GpuPairCost pair = share_a_gpu(left, right)
                                   ? kWithinAGpu
                                   : cost_between(left.paths, right.paths, !relayed.has(one, other)).value_or(kUnknownPair);
      longest_hop = std::max(longest_hop, pair.hop_seconds);
      if (!slowest || pair.bytes_per_second < slowest->bytes_per_second) slowest = pair;
    }
  if (!slowest) return kUnknownPair;
  slowest->hop_seconds = longest_hop;
  return *slowest;
}

CostModel assumed_device_costs(const CostModel& host, const GpuPairCost& slowest) {
  CostModel costs = host;
  costs.node = TierCost{slowest.hop_seconds, slowest.bytes_per_second, kMessageSeconds};
  costs.codec_bytes_per_second = kCodecBytesPerSecond;
  costs.switch_seconds = 0;
  return costs;
}

CostModel assumed_device_costs(const Communicator& control, std::span<const RankStatement> statements,
                               const RelayedPairs& relayed) {
  const GpuPairCost slowest = slowest_pair(control.tiers(), statements, relayed);
  SETO_LOG_AS(info, (LogOrigin{control.rank(), 0}),
              "calls between GPUs are assumed to take %.2f us for a hop, and to carry %.3g GB/s over %s",
              slowest.hop_seconds * 1e6, slowest.bytes_per_second / 1e9, name_of(slowest).c_str());
  return assumed_device_costs(control.costs(), slowest);
}

bool pays_marks(const Algorithm& algorithm, int ranks, std::uint64_t bytes, const CostModel& costs) {
  // Each of these is one message from every rank to every other. A barrier has no word, and orders memory, which marks do not.
  struct Exchange {
    Collective collective;
    std::string_view algorithm;
  };
  constexpr Exchange kExchanges[] = {{Collective::all_reduce, "one_shot"},
                                     {Collective::all_gather, "direct"},
                                     {Collective::reduce_scatter, "direct"},
                                     {Collective::all_to_all, "direct"}};
  const bool is_exchange = std::any_of(std::begin(kExchanges), std::end(kExchanges), [&](const Exchange& one) {
    return one.collective == algorithm.collective && one.algorithm == algorithm.name;
  });
  if (!is_exchange || ranks < 2 || bytes == 0 || bytes > DeviceChannels::most_marked_bytes(static_cast<std::size_t>(ranks)))
    return false;
  const double more_seconds = static_cast<double>(bytes) * (ranks - 1) / costs.node.bytes_per_second;
  return more_seconds < costs.node.latency_seconds / 2;
}

bool can_measure_device_costs(std::span<const RankStatement> statements) {
  return statements.size() > 1 && !any_pair(statements, [](const RankStatement& one, const RankStatement& other) {
           return share_a_gpu(one, other) && one.process != other.process;
         });
}

DeviceCostMeasurement::~DeviceCostMeasurement() {
  if (stream_ != nullptr) static_cast<void>(setup_.gpu->driver().stream_destroy.code(stream_));
}

Result<CostModel> DeviceCostMeasurement::run(CostModel assumed, Bootstrap& bootstrap, Deadline until) {
  SETO_TRY(agree(bootstrap, setup_.gpu->driver().stream_create_with_priority(&stream_, cuda::kStreamNonBlocking, 0), until));
  // A ring passes a value on 2 (n - 1) times, one after the other, and `direct` once.
  SETO_ASSIGN(const double one_hop, time("direct", kShort, bootstrap, until));
  double hop = 0;
  double rate = 0;
  if (one_hop <= kMostSeconds) {
    SETO_ASSIGN(const double many_hops, time("ring", kShort, bootstrap, until));
    hop = (many_hops - one_hop) / (2.0 * setup_.ranks - 3);
  }
  double last = one_hop;
  for (const std::uint64_t bytes : kLong) {
    if (last > kMostSeconds) break;
    SETO_ASSIGN(last, time("direct", bytes, bootstrap, until));
    if (last > one_hop) rate = static_cast<double>(bytes) * (setup_.ranks - 1) / (last - one_hop);
  }
  const bool takes_hop = hop > 0 && hop <= kLongestHopSeconds;
  const bool takes_rate = rate >= kSlowestBytesPerSecond;
  if (takes_hop) assumed.node.latency_seconds = hop;
  if (takes_rate) assumed.node.bytes_per_second = rate;
  if (takes_hop || takes_rate) assumed.source = CostSource::measured;
  const auto origin = [](bool taken) { return taken ? "measured at init" : "assumed"; };
  SETO_LOG_AS(info, (LogOrigin{setup_.rank, 0}), "calls between GPUs: %.2f us for a hop (%s), %.3g GB/s (%s)",
              assumed.node.latency_seconds * 1e6, origin(takes_hop), assumed.node.bytes_per_second / 1e9, origin(takes_rate));
  return assumed;
}

Result<double> DeviceCostMeasurement::time(std::string_view algorithm, std::uint64_t bytes, Bootstrap& bootstrap,
                                           Deadline until) {
  const Result<double> mine = time_here(algorithm, bytes, until);
  SETO_TRY(agree(bootstrap, mine.status(), until));
  std::string text(sizeof(double), '\0');
  std::memcpy(text.data(), &mine.value(), sizeof(double));
  SETO_ASSIGN(const std::vector<std::string> all, bootstrap.all_gather(std::move(text), until));
  double slowest = 0;
  for (const std::string& one : all) {
    double seconds = 0;
    if (one.size() == sizeof seconds) std::memcpy(&seconds, one.data(), sizeof seconds);
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

Result<double> DeviceCostMeasurement::time_here(std::string_view algorithm, std::uint64_t bytes, Deadline until) {
  Call call;
  const kernels::Address buffers = setup_.workspace + capacity_left(setup_.capacity);
  call.input = reinterpret_cast<const void*>(buffers);
  call.output = reinterpret_cast<void*>(buffers + kLongest);
  call.count = bytes / sizeof(float);
  call.algorithm = algorithm_id(algorithm);
  call.codec = codec_id("none");
  SETO_TRY(launch(call, 1));
  SETO_TRY(await(until));
  const std::uint64_t start = monotonic_ns();
  SETO_TRY(launch(call, kCalls));
  SETO_TRY(await(until));
  return static_cast<double>(monotonic_ns() - start) * 1e-9 / kCalls;
}

Status DeviceCostMeasurement::launch(const Call& call, int times) {
  SETO_ASSIGN(const std::shared_ptr<DeviceShape> shape, setup_.shapes->find(call, 0));
  Launches::Request request;
  request.shape = shape;
  request.stream = stream_;
  request.arguments.input = reinterpret_cast<kernels::Address>(call.input);
  request.arguments.output = reinterpret_cast<kernels::Address>(call.output);
  request.arguments.workspace = setup_.workspace;
  SETO_ASSIGN(request.arguments.scratch, setup_.shapes->scratch(shape->scratch_size));
  for (int i = 0; i < times; ++i) SETO_TRY(setup_.launches->launch_unwatched(request));
  return {};
}

Status DeviceCostMeasurement::await(Deadline until) {
  const cuda::Driver& driver = setup_.gpu->driver();
  while (true) {
    const cuda::DriverCode code = driver.stream_query.code(stream_);
    if (code == cuda::DriverCode::success) return {};
    if (code != cuda::DriverCode::not_ready) return driver.stream_query.failed(code);
    if (until.passed()) break;
    std::this_thread::yield();
  }
  const Deadline stopped = Deadline::after_ms(kStopCallsMs);
  while (driver.stream_query.code(stream_) == cuda::DriverCode::not_ready && !stopped.passed()) {
    setup_.launches->stop();  // again and again: a kernel that lends ends later than the first time
    std::this_thread::yield();
  }
  return failure(Code::timeout, "a short call that measures the links between GPUs did not end: a rank was lost during the init");
}

}  // namespace seto
