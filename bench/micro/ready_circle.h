#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "transports/transport.h"

namespace seto {

// A circle without a medium: every slot is free, every message is there. What is left of a run is the engine.
class ReadyCircle final : public Circle {
 public:
  explicit ReadyCircle(std::uint32_t members) : members_(members) {}

  [[nodiscard]] std::uint32_t members() const override { return members_; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress, std::span<const std::uint32_t>,
                                                const StreamGeometry& geometry) override {
    return std::unique_ptr<SendStream>(new Sender(geometry));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress, const StreamGeometry& geometry) override {
    return std::unique_ptr<ReceiveStream>(new Receiver(geometry));
  }
  void begin(const Note&) override {}
  void complete(std::uint64_t) override {}
  [[nodiscard]] std::uint64_t window() const override { return 2; }
  bool note_of(std::uint32_t, std::uint64_t, Note&) const override { return false; }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t) const override { return 0; }
  void leave(Fate) override {}
  [[nodiscard]] Fate fate_of(std::uint32_t) const override { return {}; }
  [[nodiscard]] Status failure() const override { return {}; }

 private:
  class Sender final : public SendStream {
   public:
    explicit Sender(const StreamGeometry& geometry) : slot_(geometry.slot_size + 1) {}
    std::byte* acquire(Mark) override { return slot_.data(); }
    void commit(Mark mark) override { committed_ = mark; }

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

  std::uint32_t members_;
};

}  // namespace seto
