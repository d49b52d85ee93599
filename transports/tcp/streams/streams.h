#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transports/optional_streams.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::tcp {

class TcpSender final : public SendStream, private LendingSender {
 public:
  TcpSender(TcpPeerGroup& peer_group, StreamAddress address, std::span<const std::uint32_t> receivers,
            const StreamGeometry& geometry);

  std::byte* acquire(Mark mark) override;
  void commit(Mark mark, std::size_t size) override;
  // The kernel has all bytes of the slices. With lent memory the position moves when all slices lent so far are written.
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override;
  // Today the credit frames and the numbers of completed operations are the only proof of arrival, so this is released().
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override { return released(operation); }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override;
  [[nodiscard]] LendingSender* lending() override { return this; }

 private:
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override;
  [[nodiscard]] bool taken(std::uint64_t operation) override;
  bool revoke(std::uint64_t operation) override;

  // Slots of kWindow operations, and the number of frames of each slot that are not written yet.
  struct Slots final : Source {
    explicit Slots(std::size_t count) : unwritten(count) {}
    std::unique_ptr<std::byte[]> memory;
    std::vector<Unwritten> unwritten;       // by slot
    std::array<Unwritten, kWindow> lent{};  // frames of lent memory, by operation
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
  void send(const Operation& operation, Mark mark, std::size_t size, const std::byte* message, Unwritten* unwritten);

  TcpPeerGroup& peer_group_;
  StreamAddress address_;
  std::vector<std::uint32_t> receivers_;
  StreamGeometry geometry_;
  std::uint64_t initial_credit_;  // slices of an operation that need no credit frame
  std::uint64_t operations_;      // that this end may be ahead of a receiver
  std::size_t stride_;
  std::shared_ptr<Slots> slots_;
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
  void place(const Placement& placement) override { stream_.want(placement, geometry_.digest); }
  void displace(std::uint64_t operation) override;

  void disagree(Mark mark, const std::string& what);

  TcpPeerGroup& peer_group_;
  StreamAddress address_;
  StreamGeometry geometry_;
  InStream& stream_;
};

}  // namespace seto::tcp
