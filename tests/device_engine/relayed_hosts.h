#pragma once

#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "src/engine/relay/relay_channels.h"
#include "tests/device_engine/queue_peer_group.h"

namespace seto::support {

// Memory that stands for slots in a GPU. Copies to the host take any time. One thread.
class EmulatedSlots final : public GpuSlots {
 public:
  explicit EmulatedSlots(std::size_t size) : memory_(size), host_(size, std::byte{0xee}) {}
  [[nodiscard]] std::byte* memory() const override { return const_cast<std::byte*>(memory_.data()); }
  [[nodiscard]] std::size_t size() const override { return memory_.size(); }
  [[nodiscard]] const std::byte* host() const override { return host_.data(); }
  void copy(std::shared_ptr<SlotCopy> wanted) override { wanted_.push_back(std::move(wanted)); }
  // The oldest copy ends, with this outcome.
  void go_on(const Status& outcome = {});
  [[nodiscard]] std::size_t copies() const { return copies_; }

 private:
  std::vector<std::byte> memory_, host_;
  std::deque<std::shared_ptr<SlotCopy>> wanted_;
  std::size_t copies_ = 0;
};

// The relays of all ranks of a job, with their staging memory. One thread serves all of them.
class RelayedHosts final {
 public:
  // `gpu_seed`: not 0: slots of some senders lie in memory of the GPU, and devices read them, or not, at random.
  static Result<std::unique_ptr<RelayedHosts>> create(const std::vector<BoundProgram>& programs, const DeviceCut& cut,
                                                      const DeviceChannels& channels, std::uint64_t gpu_seed = 0);
  // `ends`: of the program of that rank. They get the slots in memory of the GPU.
  void put_in_gpu(std::size_t rank, DeviceEnds& ends) const;

  [[nodiscard]] kernels::Address staging(std::size_t rank) const {
    return reinterpret_cast<kernels::Address>(ranks_[rank].staging.data());
  }
  // Moves the messages of the next operation until all have moved or `stop` is not 0.
  void serve(std::uint32_t& stop);
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }
  // Messages of all ranks that devices have read, and that were copied to the host.
  [[nodiscard]] std::size_t read_by_devices() const { return streams_.read_by_devices; }
  [[nodiscard]] std::size_t copied() const;

 private:
  struct RankState {
    std::vector<std::uint64_t> staging;    // of words, so that flags are aligned
    std::unique_ptr<EmulatedSlots> slots;  // null: none
    std::vector<RelayProgram::Channel> in_gpu;
    std::unique_ptr<QueuePeerGroup> peer_group;
    std::shared_ptr<RelayChannels> channels;

    [[nodiscard]] std::byte* memory() { return reinterpret_cast<std::byte*>(staging.data()); }
  };

  QueueStreams streams_;
  std::vector<RankState> ranks_;
  std::uint64_t operation_ = 0;
  std::mt19937_64 random_;
};

}  // namespace seto::support
