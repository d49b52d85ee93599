#include "tests/device_engine/relayed_hosts.h"

#include <atomic>
#include <cstring>
#include <thread>

namespace seto::support {
namespace {

constexpr std::uint32_t kDigest = 1;
constexpr std::uint32_t kMessagesAtOnce = 3;

}  // namespace

void EmulatedSlots::go_on(const Status& outcome) {
  if (wanted_.empty()) return;
  const std::shared_ptr<SlotCopy> next = std::move(wanted_.front());
  wanted_.pop_front();
  for (const SlotCopy::Part& part : next->parts())
    if (outcome.ok()) std::memcpy(host_.data() + part.place, memory_.data() + part.place, part.size);
  ++copies_;
  next->end(outcome);
}

Result<std::unique_ptr<RelayedHosts>> RelayedHosts::create(const std::vector<BoundProgram>& programs, const DeviceCut& cut,
                                                           const DeviceChannels& channels, std::uint64_t gpu_seed) {
  auto made = std::make_unique<RelayedHosts>();
  made->random_.seed(gpu_seed);
  made->streams_.random.seed(gpu_seed);
  made->ranks_.resize(programs.size());
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    RankState& state = made->ranks_[rank];
    state.staging.resize(channels.staging_size(rank) / sizeof(std::uint64_t));
    state.peer_group = std::make_unique<QueuePeerGroup>(made->streams_, static_cast<std::uint32_t>(rank),
                                                        static_cast<std::uint32_t>(programs.size()));
    SETO_ASSIGN(RelayProgram program, RelayProgram::of(programs[rank], cut, channels.relayed_of(rank)));
    if (gpu_seed != 0) state.slots = std::make_unique<EmulatedSlots>(channels.staging_size(rank));
    for (RelayProgram::Channel& channel : program.channels) {
      if (state.slots == nullptr || !channel.end.sends || made->random_() % 4 == 0) continue;
      channel.in_gpu = true;
      state.in_gpu.push_back(channel);
    }
    SETO_ASSIGN(state.channels, RelayChannels::open(std::move(program), kDigest, 0, *state.peer_group, state.slots.get()));
  }
  return made;
}

void RelayedHosts::put_in_gpu(std::size_t rank, DeviceEnds& ends) const {
  for (RelayProgram::Channel channel : ranks_[rank].in_gpu) RelayProgram::put_in_gpu(channel, *ranks_[rank].slots, ends);
}

std::size_t RelayedHosts::copied() const {
  std::size_t all = 0;
  for (const RankState& rank : ranks_) all += rank.slots != nullptr ? rank.slots->copies() : 0;
  return all;
}

void RelayedHosts::serve(std::uint32_t& stop) {
  ++operation_;
  for (RankState& rank : ranks_) rank.channels->start({operation_ + 5, operation_});
  for (bool all_done = false; !all_done && std::atomic_ref(stop).load(std::memory_order_relaxed) == 0;) {
    all_done = true;
    for (RankState& rank : ranks_) {
      if (load_flag(rank.memory(), DeviceChannels::kRelayDone) == operation_) continue;
      rank.channels->advance(rank.memory(), kMessagesAtOnce);
      if (rank.slots != nullptr && random_() % 3 == 0) rank.slots->go_on();
      if (rank.channels->done())
        store_flag(rank.memory(), DeviceChannels::kRelayDone, operation_);
      else
        all_done = false;
    }
    std::this_thread::yield();
  }
}

}  // namespace seto::support
