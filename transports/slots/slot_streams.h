#pragma once

#include <array>
#include <vector>

#include "transports/slots/slot_circle.h"

namespace seto::slots {

class SlotSender final : public SendStream {
 public:
  SlotSender(SlotCircle& circle, StreamAddress address, std::span<const std::uint32_t> receivers, const StreamGeometry& geometry);

  std::byte* acquire(Mark mark) override;
  void commit(Mark mark) override;

  [[nodiscard]] bool lends() const override { return lends_; }
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override;
  [[nodiscard]] bool taken(std::uint64_t operation) override;
  bool revoke(std::uint64_t operation) override;

 private:
  struct Window {
    StreamLine* line = nullptr;
    TailLine* tail = nullptr;
    std::vector<const CounterLine*> taken;  // by receiver
    Mark taken_by_all = 0;
    std::uint64_t opened = 0;                                         // operation
    std::size_t slots = 0;                                            // offset in the own segment
    bool goes_on = false;                                             // in the slots of the operation before
    alignas(kLineSize) std::array<std::byte, kInlineSize> staging{};  // a short message of several lines, in one piece
  };

  // What the slots of an operation are: leased ones, or memory of the caller.
  struct Lent {
    const std::byte* first = nullptr;
    std::size_t stride = 0;
  };

  bool open(Window& window, std::uint64_t operation, const Lent& lent);
  bool choose_slots(Window& window, std::uint64_t operation);
  bool credit(Window& window, Mark needed);
  bool free_again(Window& window, Mark mark);

  SlotCircle& circle_;
  StreamAddress address_;
  std::vector<std::uint32_t> receivers_;
  StreamGeometry geometry_;
  std::uint32_t target_;  // which of this member's lines of the port
  std::uint64_t serial_;
  std::uint32_t stride_;
  bool inline_;
  bool lends_;
  bool returns_ = false;     // receivers say of every slot that they have read it
  std::uint32_t tails_ = 0;  // lines beyond the head that a short message needs
  std::array<Window, kWindow> windows_;
};

class SlotReceiver final : public ReceiveStream {
 public:
  SlotReceiver(SlotCircle& circle, StreamAddress address, const StreamGeometry& geometry);

  const std::byte* front(Mark mark) override;
  void release(Mark mark) override;

  [[nodiscard]] bool borrows() const override { return borrows_; }
  bool hold(Mark mark) override;
  void let_go(Mark mark) override;

 private:
  struct Window {
    const StreamLine* line = nullptr;
    const TailLine* tail = nullptr;
    CounterLine* taken = nullptr;
    Mark committed = 0;  // as last read
    const std::byte* slots = nullptr;
    std::uint32_t stride = 0;
    std::uint32_t depth = 1;   // 0: lent
    std::uint64_t opened = 0;  // operation
    alignas(kLineSize) std::array<std::byte, kInlineSize> staging{};
  };

  bool open(Window& window, std::uint64_t operation);
  bool find_slots(Window& window);
  bool plausible(Window& window, std::uint64_t operation);
  const std::byte* unpack(Window& window);

  SlotCircle& circle_;
  std::uint32_t sender_;
  StreamGeometry geometry_;
  bool inline_;
  bool borrows_;
  std::uint32_t tails_ = 0;
  std::array<Window, kWindow> windows_;
};

}  // namespace seto::slots
