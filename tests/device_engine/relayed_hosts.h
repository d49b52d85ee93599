#pragma once

#include <memory>
#include <vector>

#include "src/engine/relay/relay_channels.h"
#include "tests/device_engine/queue_peer_group.h"

namespace seto::support {

// The relays of all ranks of a job, with their staging memory. One thread serves all of them.
class RelayedHosts final {
 public:
  static Result<std::unique_ptr<RelayedHosts>> create(const std::vector<BoundProgram>& programs, const DeviceCut& cut,
                                                      const DeviceChannels& channels);

  [[nodiscard]] kernels::Address staging(std::size_t rank) const {
    return reinterpret_cast<kernels::Address>(ranks_[rank].staging.data());
  }
  // Moves the messages of the next operation until all have moved or `stop` is not 0.
  void serve(std::uint32_t& stop);
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }

 private:
  struct RankState {
    std::vector<std::uint64_t> staging;  // of words, so that flags are aligned
    std::unique_ptr<QueuePeerGroup> peer_group;
    std::shared_ptr<RelayChannels> channels;

    [[nodiscard]] std::byte* memory() { return reinterpret_cast<std::byte*>(staging.data()); }
  };

  QueueStreams streams_;
  std::vector<RankState> ranks_;
  std::uint64_t operation_ = 0;
};

}  // namespace seto::support
