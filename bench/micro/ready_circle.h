#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "transports/transport.h"

namespace seto {

// A peer group without a medium: every slot is free and every message has arrived, so a run measures the engine alone.
class ReadyPeerGroup final : public PeerGroup {
 public:
  explicit ReadyPeerGroup(std::uint32_t members) : members_(members) {}

  [[nodiscard]] std::uint32_t members() const override { return members_; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress, std::span<const std::uint32_t>,
                                                const StreamGeometry& geometry) override {
    return std::unique_ptr<SendStream>(new Sender(geometry));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress, const StreamGeometry& geometry) override {
    return std::unique_ptr<ReceiveStream>(new Receiver(geometry));
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t) override { return no_pairs(); }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t) override { return no_pairs(); }
  [[nodiscard]] PeerStatus& status() override { return status_; }
  void complete(std::uint64_t) override {}
  [[nodiscard]] Status failure() const override { return {}; }

 private:
  class NoStatus final : public PeerStatus {
   public:
    void begin(const Note&) override {}
    bool note_of(std::uint32_t, std::uint64_t, Note&) const override { return false; }
    [[nodiscard]] std::uint64_t completed_by(std::uint32_t) const override { return 0; }
    void leave(Fate) override {}
    [[nodiscard]] Fate fate_of(std::uint32_t) const override { return {}; }
    [[nodiscard]] std::uint64_t departures() const override { return 0; }
    void explain(std::string_view) override {}
    [[nodiscard]] std::string explanation_of(std::uint32_t) const override { return {}; }
    [[nodiscard]] bool departed(std::uint32_t) const override { return false; }
    [[nodiscard]] bool silent(std::uint32_t) const override { return true; }
  };
  class Sender final : public SendStream {
   public:
    explicit Sender(const StreamGeometry& geometry) : slot_(geometry.slot_size + 1) {}
    std::byte* acquire(Mark) override { return slot_.data(); }
    void commit(Mark mark, std::size_t) override { committed_ = mark; }
    [[nodiscard]] std::uint64_t handed_over(std::uint64_t) const override { return slice_of(committed_) + 1; }
    [[nodiscard]] std::uint64_t acknowledged(std::uint64_t) const override { return slice_of(committed_) + 1; }
    [[nodiscard]] std::uint64_t released(std::uint64_t) const override { return slice_of(committed_) + 1; }

   private:
    std::vector<std::byte> slot_;
    Mark committed_ = 0;
  };
  class Receiver final : public ReceiveStream {
   public:
    explicit Receiver(const StreamGeometry& geometry) : slot_(geometry.slot_size + 1) {}
    const std::byte* front(Mark) override { return slot_.data(); }
    void release(Mark mark) override { released_ = mark; }

   private:
    std::vector<std::byte> slot_;
    Mark released_ = 0;
  };

  static Status no_pairs() { return seto::failure(Code::invalid_usage, "this group has no messages between two members"); }

  std::uint32_t members_;
  NoStatus status_;
};

}  // namespace seto
