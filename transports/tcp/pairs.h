#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "transports/tcp/tcp_peer_group.h"

namespace seto::tcp {

class TcpPairSender final : public PairSender {
 public:
  TcpPairSender(TcpCircle& circle, std::uint32_t receiver);

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece acquire(const Letter& letter) override;
  bool commit() override;
  [[nodiscard]] Letter other_end() const override { return theirs_; }

 private:
  static constexpr std::size_t kSlots = 4;
  struct Slots final : Source {
    struct Slot {
      alignas(64) std::array<std::byte, kLetterSize + kPieceSize> memory;
      Unwritten unwritten = 0;
    };
    std::array<std::unique_ptr<Slot>, kSlots> slots;
  };

  bool refused();
  void next();

  TcpCircle& circle_;
  std::uint32_t receiver_;
  std::shared_ptr<Slots> slots_;
  std::uint64_t message_ = 1;
  std::uint64_t size_ = 0;
  std::uint64_t done_ = 0;  // bytes of the message
  bool opened_ = false;
  Letter letter_;
  Letter theirs_;
  std::size_t piece_ = 0;       // bytes of the piece at hand
  std::uint64_t position_ = 0;  // pieces so far
  std::uint64_t sent_ = 0;      // bytes so far, letters too
};

class TcpPairReceiver final : public PairReceiver {
 public:
  TcpPairReceiver(TcpCircle& circle, std::uint32_t sender) : circle_(circle), sender_(sender) {}

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece front(const Letter& letter) override;
  bool release() override;
  [[nodiscard]] Letter other_end() const override { return theirs_; }
  [[nodiscard]] bool knocks() const override;
  [[nodiscard]] Letter at_the_door() const override { return *pair().letter_of(message_); }

 private:
  [[nodiscard]] InPair& pair() const { return *circle_.peers_[sender_].pair; }
  void tell_opened();
  void refuse(const Letter& letter);
  void next();

  TcpCircle& circle_;
  std::uint32_t sender_;
  std::uint64_t message_ = 1;
  bool opened_ = false;
  Letter theirs_;
  std::uint64_t done_ = 0;
  std::size_t piece_ = 0;
};

}  // namespace seto::tcp
