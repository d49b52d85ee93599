#pragma once

#include <array>

#include "transports/slots/slot_peer_group.h"

namespace seto::slots {

// Messages to one member. Each has its own line, so that a few may be in flight. Long messages share one ring of slots and fill
// the slots one after another.
class SlotPairSender final : public PairSender {
 public:
  SlotPairSender(SlotPeerGroup& peer_group, std::uint32_t receiver);
  ~SlotPairSender() override;
  SlotPairSender(const SlotPairSender&) = delete;
  SlotPairSender& operator=(const SlotPairSender&) = delete;

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece acquire(const MessageHeader& header) override;
  bool commit() override;
  [[nodiscard]] MessageHeader other_end() const override;

 private:
  static constexpr std::uint32_t kDepth = 4;

  [[nodiscard]] PairLine& line() const { return lines_[message_ % kPairLines]; }
  PairPiece::State open(const MessageHeader& header);
  bool choose_ring(std::uint64_t size);
  bool taken(Mark mark);
  void next();

  SlotPeerGroup& peer_group_;
  std::uint32_t receiver_;
  PairLine* lines_;
  const PairTakenLine* taken_line_;
  Mark taken_ = 0;  // as last read

  std::uint64_t message_ = 1;
  bool opened_ = false;
  bool inline_ = false;
  std::uint64_t size_ = 0;  // of the message
  std::uint64_t done_ = 0;  // bytes of the message
  std::uint64_t pieces_ = 0;
  std::size_t piece_ = 0;  // bytes of the current piece

  std::size_t ring_ = 0;  // offset in this member's segment
  std::size_t ring_size_ = 0;
  std::uint32_t stride_ = 0;
  std::uint64_t position_ = 0;           // slots filled so far
  std::array<Mark, kDepth> last_use_{};  // by slot: the slot is free once the receiver has reached this mark
};

class SlotPairReceiver final : public PairReceiver {
 public:
  SlotPairReceiver(SlotPeerGroup& peer_group, std::uint32_t sender);

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece front(const MessageHeader& header) override;
  bool release() override;
  [[nodiscard]] MessageHeader other_end() const override { return theirs_; }
  [[nodiscard]] bool has_pending() const override;
  [[nodiscard]] MessageHeader pending_header() const override;

 private:
  PairPiece::State open(const MessageHeader& header);
  bool sound();
  void refuse(const MessageHeader& header);
  void next();

  SlotPeerGroup& peer_group_;
  std::uint32_t sender_;
  const PairLine* lines_;
  PairTakenLine* taken_line_;

  std::uint64_t message_ = 1;
  bool opened_ = false;
  MessageHeader theirs_;
  Mark committed_ = 0;  // of the message, as last read
  std::uint64_t done_ = 0;
  std::uint64_t pieces_ = 0;
  std::size_t piece_ = 0;
  std::uint64_t offset_ = 0;  // of the message's ring, copied once from its line
  std::uint32_t stride_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace seto::slots
