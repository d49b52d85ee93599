#pragma once

#include <array>
#include <optional>
#include <vector>

#include "transports/partial_lender.h"
#include "transports/slots/slot_peer_group.h"

namespace seto::slots {

class SlotSender final : public SendStream, public PartialLender {
 public:
  SlotSender(SlotPeerGroup& peer_group, StreamAddress address, std::span<const std::uint32_t> receivers,
             const StreamGeometry& geometry);

  std::byte* acquire(Mark mark) override;
  void commit(Mark mark, std::size_t size) override;
  bool send(Mark mark, const std::byte* message, std::size_t size) override;
  // A receiver can read a committed slice at once: memory is both the medium and the receiver's end of it.
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t operation) const override;
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t operation) const override { return handed_over(operation); }
  [[nodiscard]] std::uint64_t released(std::uint64_t operation) const override;
  // Offered if every receiver is in this process. Otherwise this object is a PartialLender.
  [[nodiscard]] LendingSender* lending() override { return lends_ ? this : nullptr; }

  bool lend(Mark mark, const std::byte* first, std::size_t stride) override;
  [[nodiscard]] bool taken(std::uint64_t operation) override;
  bool revoke(std::uint64_t operation) override;

 private:
  // Where the messages of an operation are: the fields of the header with these names.
  struct Position {
    std::uint64_t offset = 0;
    std::uint32_t stride = 0;
    std::uint32_t depth = 0;
  };

  struct Window {
    StreamLine* line = nullptr;
    TailLine* tail = nullptr;
    std::vector<const Counter*> taken;  // by receiver
    Mark taken_by_all = 0;
    std::uint64_t opened = 0;  // operation
    std::size_t slots = 0;     // offset in the own segment
    bool goes_on = false;      // in the slots of the previous operation
    bool lent = false;
    Position position{};
    alignas(kLineSize) std::array<std::byte, kInlineSize> staging{};  // a message of several lines in one piece
  };

  // Leases slots if there is no position.
  bool open(Window& window, std::uint64_t operation, const std::optional<Position>& lent);
  bool receivers_read_our_memory();
  bool choose_slots(Window& window, std::uint64_t operation);
  std::size_t place_in(SlotLeases::Lease& lease) const;
  bool credit(Window& window, Mark needed);
  bool free_again(Window& window, Mark mark);
  void put_header(Window& window);
  void send_parts(Window& window, Mark mark, const std::byte* message, std::size_t size);
  void tell(Window& window, Mark mark);
  void announce_next(const Window& window) const;

  SlotPeerGroup& peer_group_;
  StreamAddress address_;
  std::vector<std::uint32_t> receivers_;
  StreamGeometry geometry_;
  std::uint32_t target_;  // receiver, or members() + group - 1
  SlotLeases::Use& use_;
  std::uint64_t serial_;
  std::uint32_t stride_;
  bool inline_;
  bool lends_;
  bool readable_ = false;    // every receiver can read the lendable memory of this process
  bool returns_ = false;     // receivers report every slot that they have read
  std::size_t bytes_ = 0;    // of the slots of one operation
  std::size_t room_ = 0;     // of a lease, in which the slots of successive operations move on
  std::uint32_t tails_ = 0;  // lines beyond the head that a short message needs
  std::array<Window, kWindow> windows_;
};

class SlotReceiver final : public ReceiveStream, private BorrowingReceiver {
 public:
  SlotReceiver(SlotPeerGroup& peer_group, StreamAddress address, const StreamGeometry& geometry);

  const std::byte* front(Mark mark) override;
  void release(Mark mark) override;

  [[nodiscard]] BorrowingReceiver* borrowing() override { return borrows_ ? this : nullptr; }

 private:
  bool hold(Mark mark) override;
  void let_go(Mark mark) override;

  struct Window {
    const StreamLine* line = nullptr;
    const TailLine* tail = nullptr;
    Counter* taken = nullptr;
    Mark committed = 0;  // as last read
    const std::byte* slots = nullptr;
    std::uint32_t stride = 0;
    std::uint32_t depth = 1;   // 0: lent, in either way
    std::uint64_t opened = 0;  // operation
    alignas(kLineSize) std::array<std::byte, kInlineSize> staging{};
  };

  bool open(Window& window, std::uint64_t operation);
  bool find_slots(Window& window);
  [[nodiscard]] const std::byte* find_lent(std::uint64_t offset, std::uint32_t stride, std::uint32_t depth) const;
  void check_not_abandoned(const Window& window, std::uint64_t operation);
  bool plausible(Window& window, std::uint64_t operation);
  const std::byte* unpack(Window& window);

  SlotPeerGroup& peer_group_;
  std::uint32_t sender_;
  StreamGeometry geometry_;
  bool inline_;
  bool borrows_;
  std::uint32_t tails_ = 0;
  std::array<Window, kWindow> windows_;
};

}  // namespace seto::slots
