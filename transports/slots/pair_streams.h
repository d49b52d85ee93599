#pragma once

#include <array>

#include "transports/slots/slot_circle.h"

namespace seto::slots {

// Messages to one member. Each has a line of its own, so that a few may be under way; the long ones share a ring of slots, which
// they fill one after another.
class SlotPairSender final : public PairSender {
 public:
  SlotPairSender(SlotCircle& circle, std::uint32_t receiver);
  ~SlotPairSender() override;
  SlotPairSender(const SlotPairSender&) = delete;
  SlotPairSender& operator=(const SlotPairSender&) = delete;

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece acquire(const Letter& letter) override;
  bool commit() override;
  [[nodiscard]] Letter other_end() const override;

 private:
  static constexpr std::uint32_t kDepth = 4;

  [[nodiscard]] PairLine& line() const { return lines_[message_ % kPairLines]; }
  PairPiece::State open(const Letter& letter);
  bool choose_ring(std::uint64_t size);
  bool taken(Mark mark);
  void next();

  SlotCircle& circle_;
  std::uint32_t receiver_;
  PairLine* lines_;
  const PairTakenLine* taken_line_;
  Mark taken_ = 0;  // as last read

  std::uint64_t message_ = 1;
  bool opened_ = false;
  bool inline_ = false;
  std::uint64_t size_ = 0;  // of the message
  std::uint64_t done_ = 0;  // bytes of it
  std::uint64_t pieces_ = 0;
  std::size_t piece_ = 0;  // bytes of the piece at hand

  std::size_t ring_ = 0;  // offset in the own segment
  std::size_t ring_size_ = 0;
  std::uint32_t stride_ = 0;
  std::uint64_t position_ = 0;           // slots filled so far
  std::array<Mark, kDepth> last_use_{};  // by slot: free once the receiver has taken that much
};

class SlotPairReceiver final : public PairReceiver {
 public:
  SlotPairReceiver(SlotCircle& circle, std::uint32_t sender);

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece front(const Letter& letter) override;
  bool release() override;
  [[nodiscard]] Letter other_end() const override { return theirs_; }
  [[nodiscard]] bool knocks() const override;
  [[nodiscard]] Letter at_the_door() const override;

 private:
  PairPiece::State open(const Letter& letter);
  bool sound();
  void refuse(const Letter& letter);
  void next();

  SlotCircle& circle_;
  std::uint32_t sender_;
  const PairLine* lines_;
  PairTakenLine* taken_line_;

  std::uint64_t message_ = 1;
  bool opened_ = false;
  Letter theirs_;
  Mark committed_ = 0;  // of the message, as last read
  std::uint64_t done_ = 0;
  std::uint64_t pieces_ = 0;
  std::size_t piece_ = 0;
  std::uint64_t offset_ = 0;  // of the message's ring, copied from its line once
  std::uint32_t stride_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace seto::slots
