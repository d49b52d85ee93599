#include "tests/device_engine/relayed_hosts.h"

#include <atomic>
#include <thread>

namespace seto::support {
namespace {

constexpr std::uint32_t kDigest = 1;
constexpr std::uint32_t kMessagesAtOnce = 3;

}  // namespace

Result<std::unique_ptr<RelayedHosts>> RelayedHosts::create(const std::vector<BoundProgram>& programs, const DeviceCut& cut,
                                                           const DeviceChannels& channels) {
  auto made = std::make_unique<RelayedHosts>();
  made->ranks_.resize(programs.size());
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    RankState& state = made->ranks_[rank];
    state.staging.resize(channels.staging_size(rank) / sizeof(std::uint64_t));
    state.peer_group = std::make_unique<QueuePeerGroup>(made->streams_, static_cast<std::uint32_t>(rank),
                                                        static_cast<std::uint32_t>(programs.size()));
    SETO_ASSIGN(RelayProgram program, RelayProgram::of(programs[rank], cut, channels.relayed_of(rank)));
    SETO_ASSIGN(state.channels, RelayChannels::open(std::move(program), kDigest, 0, *state.peer_group));
  }
  return made;
}

void RelayedHosts::serve(std::uint32_t& stop) {
  ++operation_;
  for (RankState& rank : ranks_) rank.channels->start({operation_ + 5, operation_});
  for (bool all_done = false; !all_done && std::atomic_ref(stop).load(std::memory_order_relaxed) == 0;) {
    all_done = true;
    for (RankState& rank : ranks_) {
      if (load_flag(rank.memory(), DeviceChannels::kRelayDone) == operation_) continue;
      rank.channels->advance(rank.memory(), kMessagesAtOnce);
      if (rank.channels->done())
        store_flag(rank.memory(), DeviceChannels::kRelayDone, operation_);
      else
        all_done = false;
    }
    std::this_thread::yield();
  }
}

}  // namespace seto::support
