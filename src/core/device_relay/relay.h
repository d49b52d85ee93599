#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/core/device_relay/message_relay.h"
#include "src/core/device_relay/relay_task.h"
#include "src/engine/relay/gpu_slots.h"

namespace seto {

// The operation of a launch, once its stream has announced it.
struct AnnouncedOperation {
  std::atomic<std::uint64_t> number{0};  // 0: not yet
  std::uint32_t digest = 0;              // written before the number
};

// Carries the messages between this rank's kernels and the peers that its GPU does not reach, over the streams of the control.
// The background thread of the control's context does the work, or whichever thread drives that context. One thread launches; it
// also closes.
class Relay final {
 public:
  // `control` and `staging` outlive it. The last operation that the control has ended is the one before the first launch.
  // `on_announced`: called by host functions of streams when a launch that was announced begins.
  static Result<std::unique_ptr<Relay>> create(Communicator& control, const Staging& staging, std::function<void()> on_announced);
  ~Relay() { close(); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  Result<std::shared_ptr<RelayChannels>> open(RelayProgram program, std::uint32_t digest, std::uint64_t window_bytes);
  // The launch that comes next takes the next operation of the control. `note` has the digest of its shape. Returns the note of
  // the operation, whose digest covers all operations so far.
  Note add(const Note& note, std::shared_ptr<RelayChannels> channels, LaunchKind kind = LaunchKind::once);

  // A graph may repeat a launch at any time, between others. So a launch of a graph, and every one after the first of them, is
  // announced by a host function before its kernel in the stream, and takes its number then.
  class Announcement;
  struct DropAnnouncement {
    void operator()(Announcement* announcement) const;
  };
  using AnnouncementPtr = std::unique_ptr<Announcement, DropAnnouncement>;
  [[nodiscard]] bool announces() const { return announces_; }
  // Its number, once it has one, is stored in `operation`; null: of a graph. The host function is run(), with what is returned.
  // The caller releases it once the stream has it: the host function frees it, unless a graph repeats it.
  AnnouncementPtr announce(const Note& note, std::shared_ptr<RelayChannels> channels,
                           std::shared_ptr<AnnouncedOperation> operation);
  static void run(void* announcement);
  // Announcements of this process that were not freed.
  [[nodiscard]] static std::size_t announcements();
  // Some launch has not ended, or messages are moving.
  [[nodiscard]] bool is_busy() const {
    return ended_launches() != launches_.load(std::memory_order_acquire) || messages_->is_busy();
  }
  // Sends and receives, which are no operations.
  [[nodiscard]] MessageRelay& messages() const { return *messages_; }

  // Ends what is left; if something is, the control fails. The streams end, although shapes may keep their channels.
  void close();

  // All messages of the operation have moved and its kernel has said that it has ended, or the control has failed. Any thread.
  [[nodiscard]] bool has_ended(std::uint64_t operation) const { return ended_.load(std::memory_order_acquire) >= operation; }
  // Token held. What the oldest operation waits for besides its kernel; empty: nothing.
  [[nodiscard]] std::string waits_for() const;

  // The ranks on the way to which devices read memory of this GPU, as the last operations have found, and a number of this set;
  // 0: none. Any thread.
  struct Readers {
    std::uint64_t number = 0;
    std::vector<bool> ranks;
  };
  [[nodiscard]] std::uint64_t readers_number() const { return readers_number_.load(std::memory_order_acquire); }
  [[nodiscard]] Readers readers() const;
  // Before the first operation: from now on messages may lie there. They outlive it; null: messages stay in memory of the host.
  void use_slots(GpuSlots* slots) { slots_ = slots; }
  [[nodiscard]] GpuSlots* slots() const { return slots_; }

  // For its tasks.
  void find_readers(const RelayChannels& channels);
  [[nodiscard]] Communicator& control() const { return control_; }
  [[nodiscard]] const Staging& staging() const { return staging_; }
  [[nodiscard]] std::uint64_t kernel_done() const { return load_flag(staging_.memory(), DeviceChannels::kKernelDone); }
  void say_done(std::uint64_t of_kernel) { store_flag(staging_.memory(), DeviceChannels::kRelayDone, of_kernel); }
  [[nodiscard]] std::uint64_t ended_launches() const { return ended_launches_.load(std::memory_order_acquire); }
  void note_end(std::uint64_t operation) {
    ended_.store(operation, std::memory_order_release);
    ended_launches_.fetch_add(1, std::memory_order_release);
  }

 private:
  struct Gate {  // announcements may come late, after the end of the relay
    std::mutex mutex;
    Relay* relay = nullptr;
  };

  Relay(Communicator& control, const Staging& staging, std::function<void()> on_announced)
      : control_(control),
        staging_(staging),
        on_announced_(std::move(on_announced)),
        gate_(std::make_shared<Gate>()),
        ended_(control.order().issued()) {
    gate_->relay = this;
  }

  Communicator& control_;
  const Staging& staging_;
  GpuSlots* slots_ = nullptr;
  const std::function<void()> on_announced_;
  const std::shared_ptr<Gate> gate_;
  bool announces_ = false;
  std::atomic<std::uint64_t> ended_;
  std::atomic<std::uint64_t> ended_launches_{0};
  std::atomic<std::uint64_t> launches_{0};
  std::uint32_t digest_ = 0;
  std::vector<std::weak_ptr<RelayChannels>> opened_;
  std::unique_ptr<MessageRelay> messages_;
  mutable std::mutex readers_mutex_;
  std::vector<bool> readers_;
  std::atomic<std::uint64_t> readers_number_{0};
  mutable std::mutex mutex_;  // of the list
  std::deque<std::unique_ptr<RelayTask>> tasks_;
};

}  // namespace seto
