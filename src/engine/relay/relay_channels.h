#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/relay/gpu_slots.h"
#include "src/engine/relay/relay_program.h"
#include "transports/optional_streams.h"
#include "transports/peer_group.h"

namespace seto {

// The flags of staging memory: one side writes a flag, the other polls it.
[[nodiscard]] std::uint64_t load_flag(const std::byte* staging, std::uint64_t place);
void store_flag(std::byte* staging, std::uint64_t place, std::uint64_t value);

// The open streams of a call shape, which move the messages of its operations between them and the staging memory of this rank.
// One operation uses them at a time. No call waits.
class RelayChannels final {
 public:
  // `digest` and `window_bytes`: of each stream (StreamGeometry). `slots`: of channels in memory of the GPU; it outlives the
  // object. Null: there are none.
  static Result<std::shared_ptr<RelayChannels>> open(RelayProgram program, std::uint32_t digest, std::uint64_t window_bytes,
                                                     PeerGroup& peer_group, GpuSlots* slots = nullptr);
  RelayChannels(const RelayChannels&) = delete;
  RelayChannels& operator=(const RelayChannels&) = delete;
  void close();  // the streams

  // The number of an operation for streams and for the kernel.
  struct Operation {
    std::uint64_t number = 0;
    std::uint64_t of_kernel = 0;
  };
  void start(const Operation& operation);
  // Moves messages as far as possible, at most so many. Returns the number of those that moved.
  std::uint32_t advance(std::byte* staging, std::uint32_t most);
  [[nodiscard]] bool done() const { return left_ == 0; }
  // Why it can go on no more: messages in memory of the GPU do not come to the host.
  [[nodiscard]] const Status& why() const { return why_; }
  // The operation has failed: takes back what lies in memory of the GPU. True: nothing reads there. False: call again.
  bool take_back();
  // For each rank to which it sends: whether devices read memory of the GPU on the way there now. By rank; others stay.
  void find_readers(std::vector<bool>& readers) const;
  // "waits for slice 3 of 4 from rank 2"; empty: all messages have moved.
  [[nodiscard]] std::string waits_for(std::byte* staging) const;

 private:
  // The message of a slot in memory of the GPU.
  struct GpuSlot {
    std::shared_ptr<SlotCopy> copy;
    bool is_begun = false;       // the kernel has filled it
    bool is_lent = false;        // the stream sends it from there; else from a copy
    std::uint64_t since_ns = 0;  // when it was lent
  };
  struct Channel {
    const RelayProgram::Channel* bound = nullptr;
    std::unique_ptr<SendStream> send;  // null: it receives
    std::unique_ptr<ReceiveStream> receive;
    SizedReceiver* sized = nullptr;
    BorrowingReceiver* borrowing = nullptr;
    std::uint64_t moved = 0;  // slices
    GpuSender* from_gpu = nullptr;
    std::vector<std::unique_ptr<GpuSlot>> on_gpu{};  // by slot; empty: its slots are in staging memory
    std::uint64_t freed = 0;                         // slices that were moved from there, and that nothing needs any more
  };

  RelayChannels(RelayProgram program, GpuSlots* slots) : program_(std::move(program)), slots_(slots) {}
  Status open(std::uint32_t digest, std::uint64_t window_bytes, PeerGroup& peer_group);
  bool move(Channel& channel, std::byte* staging);
  [[nodiscard]] bool send(const Channel& channel, std::byte* staging) const;
  [[nodiscard]] bool send_from_gpu(Channel& channel, std::byte* staging);
  [[nodiscard]] bool free_slot(Channel& channel, std::byte* staging);
  [[nodiscard]] bool receive(const Channel& channel, std::byte* staging) const;
  // All blocks have set this flag of theirs to the mark of so many slices.
  [[nodiscard]] bool reach(std::byte* staging, std::uint64_t flags, std::uint64_t slices) const;
  void tell(std::byte* staging, std::uint64_t flags, std::uint64_t slices) const;

  const RelayProgram program_;
  GpuSlots* const slots_;
  std::vector<Channel> channels_;
  Operation operation_;
  std::uint64_t left_ = 0;             // messages
  std::vector<SlotCopy::Part> parts_;  // of one message
  std::vector<GpuSender::Part> sent_;  // the same
  Status why_;
};

}  // namespace seto
