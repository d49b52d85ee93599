#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "transports/named_memory.h"
#include "transports/optional_streams.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::tcp {

class TcpSender final : public SendStream, private LendingSender, private GpuSender {
 public:
  TcpSender(TcpPeerGroup& peer_group, StreamAddress address, std::span<const std::uint32_t> receivers,
            const StreamGeometry& geometry);

  std::byte* acquire(Mark mark) override;
  void commit(Mark mark, std::size_t size) override;
  // The kernel has all bytes of the slices, or a link keeps them. With lent memory the position moves when all slices lent so far
  // are written.
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override;
  // Today the credit frames and the numbers of completed operations are the only proof of arrival, so this is released().
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override { return released(operation); }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override;
  [[nodiscard]] LendingSender* lending() override { return this; }
  [[nodiscard]] GpuSender* from_gpu() override { return this; }

 private:
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override;
  [[nodiscard]] bool taken(std::uint64_t operation) override;
  bool revoke(std::uint64_t operation) override;
  [[nodiscard]] bool reads(const std::byte* memory, std::size_t size) override;
  bool send_parts(Mark mark, std::span<const Part> parts, const std::shared_ptr<HostCopy>& host) override;
  [[nodiscard]] bool is_free(Mark mark) const override;
  bool give_back(Mark mark) override;
  bool take_back(Mark mark) override;

  // Memory of a slot. A link of several sockets keeps frames until they are acknowledged: then it keeps the block, too, and the
  // slot takes another one.
  struct Block {
    explicit Block(std::size_t size) : memory(new (kAlignment) std::byte[size]) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
      name.reset();
      ::operator delete[](memory, kAlignment);
    }

    static constexpr std::align_val_t kAlignment{64};
    std::byte* const memory;
    std::optional<OwnName> name;  // where a rail may read it
    Unwritten unwritten = 0;
    resume::Lender lender;
  };
  // The memory that a caller lends for an operation.
  struct Lent {
    Unwritten unwritten = 0;
    resume::Lender lender;
  };
  // A message in memory of a GPU.
  struct OnGpu {
    explicit OnGpu(std::shared_ptr<HostCopy> copy) : host(std::move(copy)), lender(*host) {}
    const std::shared_ptr<HostCopy> host;
    Unwritten unwritten = 0;
    resume::Lender lender;
  };
  struct Operation {
    std::uint64_t number = 0;
    const std::byte* lent = nullptr;
    std::size_t stride = 0;
    std::uint64_t committed = 0;            // slices
    mutable std::uint64_t handed_over = 0;  // slices, as last computed
    bool revoked = false;                   // frames may have been dropped: handed_over stays
    bool asks = false;                      // receivers must report when they have completed the operation
  };

  bool open(Operation& operation, std::uint64_t number);
  [[nodiscard]] bool has_credit(Mark mark);
  [[nodiscard]] std::size_t slot_of(Mark mark) const;
  // Null: a frame of the slot waits.
  [[nodiscard]] Block* block_of(std::size_t slot);
  [[nodiscard]] std::shared_ptr<Block> make_block() const;
  [[nodiscard]] bool is_written(std::size_t slot) const {
    return (slots_[slot] == nullptr || slots_[slot]->unwritten.load(std::memory_order_acquire) == 0) &&
           (on_gpu_.empty() || on_gpu_[slot] == nullptr || on_gpu_[slot]->unwritten.load(std::memory_order_acquire) == 0);
  }
  [[nodiscard]] bool lent_is_written(std::uint64_t operation) const {
    return lent_->at(operation % kWindow).unwritten.load(std::memory_order_acquire) == 0;
  }
  // A message, whose memory stays as long as the lender.
  struct Message {
    std::span<const Part> parts;
    std::shared_ptr<resume::Lender> lender;
    Unwritten* unwritten;
  };
  void queue(const Operation& operation, Mark mark, const Message& message);

  TcpPeerGroup& peer_group_;
  StreamAddress address_;
  std::vector<std::uint32_t> receivers_;
  StreamGeometry geometry_;
  std::uint64_t initial_credit_;                // slices of an operation that need no credit frame
  std::uint64_t operations_;                    // that this end may be ahead of a receiver
  std::vector<std::uint64_t> asked_;            // by receiver: see await_progress
  std::vector<std::shared_ptr<Block>> slots_;   // of kWindow operations
  std::deque<std::shared_ptr<Block>> kept_;     // that slots had before, in this order
  std::vector<std::shared_ptr<OnGpu>> on_gpu_;  // by slot, once there was one
  std::shared_ptr<std::array<Lent, kWindow>> lent_ = std::make_shared<std::array<Lent, kWindow>>();  // by operation
  std::array<Operation, kWindow> under_way_;
  std::vector<const TcpPeerGroup::StreamCredit*> credit_;  // by receiver
};

class TcpReceiver final : public ReceiveStream, private SizedReceiver, private PlacingReceiver {
 public:
  TcpReceiver(TcpPeerGroup& peer_group, StreamAddress address, const StreamGeometry& geometry);

  const std::byte* front(Mark mark) override;
  void release(Mark mark) override;
  [[nodiscard]] SizedReceiver* sized() override { return this; }
  [[nodiscard]] PlacingReceiver* placing() override { return this; }

 private:
  bool has_size(Mark mark, std::size_t size) override;
  void place(const Placement& placement) override;
  void displace(std::uint64_t operation) override;

  void disagree(Mark mark, const std::string& what);
  [[nodiscard]] Frame frame_of(FrameKind kind) const;

  TcpPeerGroup& peer_group_;
  StreamAddress address_;
  StreamGeometry geometry_;
  InStream& stream_;
};

}  // namespace seto::tcp
