#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "transports/named_memory.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::tcp {

class TcpPairSender final : public PairSender {
 public:
  TcpPairSender(TcpPeerGroup& peer_group, std::uint32_t receiver);

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece acquire(const MessageHeader& header) override;
  bool commit() override;
  [[nodiscard]] MessageHeader other_end() const override { return theirs_; }

 private:
  static constexpr std::size_t kSlots = 4;
  // Each of sixteen sockets may hold up one.
  static constexpr std::size_t kFarSlots = 16;
  struct Slot {
    alignas(64) std::array<std::byte, kMessageHeaderSize + kPieceSize> memory;
    std::optional<OwnName> name;  // where a rail may read it
    Unwritten unwritten = 0;
    resume::Lender lender;
  };

  // The slot of the next piece; null: its last frame waits. A link may keep the memory that it had (TcpSender::Block).
  Slot* next_slot();
  bool refused();
  void next();

  TcpPeerGroup& peer_group_;
  std::uint32_t receiver_;
  std::size_t used_slots_;
  std::array<std::shared_ptr<Slot>, kFarSlots> slots_;
  std::deque<std::shared_ptr<Slot>> kept_;  // that slots_ had before, in this order
  std::uint64_t message_ = 1;
  std::uint64_t size_ = 0;
  std::uint64_t done_ = 0;  // bytes of the message
  bool opened_ = false;
  MessageHeader header_;
  MessageHeader theirs_;
  std::size_t piece_ = 0;       // bytes of the current piece
  std::uint64_t position_ = 0;  // pieces so far
  std::uint64_t sent_ = 0;      // the sum of charge_of over all pieces so far
};

class TcpPairReceiver final : public PairReceiver {
 public:
  TcpPairReceiver(TcpPeerGroup& peer_group, std::uint32_t sender);

  [[nodiscard]] std::uint64_t current() const override { return message_; }
  PairPiece front(const MessageHeader& header) override;
  bool release() override;
  [[nodiscard]] MessageHeader other_end() const override { return theirs_; }
  [[nodiscard]] bool has_pending() const override;
  [[nodiscard]] MessageHeader pending_header() const override { return *pair().header_of(message_); }

 private:
  [[nodiscard]] InPair& pair() const { return *peer_group_.peers_[sender_].pair; }
  void tell_opened();
  void refuse(const MessageHeader& header);
  void next();

  TcpPeerGroup& peer_group_;
  std::uint32_t sender_;
  std::uint64_t message_ = 1;
  bool opened_ = false;
  MessageHeader theirs_;
  std::uint64_t done_ = 0;
  std::size_t piece_ = 0;
};

}  // namespace seto::tcp
