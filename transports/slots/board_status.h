#pragma once

#include "transports/peer_status.h"
#include "transports/slots/boards.h"

namespace seto::slots {

// PeerStatus over boards and StatusLines in shared memory: each member writes its own and reads those of the others.
class BoardStatus final : public PeerStatus {
 public:
  explicit BoardStatus(const Boards& boards)
      : boards_(boards),
        notes_(&boards.line<NoteLine>(boards.own(), boards.layout().note(0))),
        progress_(boards.status_lines(boards.own()).progress.value) {}

  void begin(const Note& note) override;
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override;
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override {
    return boards_.status_lines(member).progress.value.load(std::memory_order_acquire);
  }
  void leave(Fate fate) override;
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override;
  [[nodiscard]] std::uint64_t departures() const override;
  void explain(std::string_view why) override;
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override;
  [[nodiscard]] bool departed(std::uint32_t member) const override {
    return identity_of(member) != boards_.member(member).identity;
  }
  // A store that a member made before it left is visible to every reader of its fate.
  [[nodiscard]] bool silent(std::uint32_t) const override { return true; }

  // ---- for the transport ----

  void complete(std::uint64_t operation) {
    progress_.store(operation, std::memory_order_release);
    boards_.wake_others();
  }
  void depart() { boards_.status_lines(boards_.own()).identity.value.store(0, std::memory_order_release); }
  // The member has left or its process has ended: it reads no message any more.
  [[nodiscard]] bool gone(std::uint32_t member) const;

 private:
  [[nodiscard]] std::uint64_t identity_of(std::uint32_t member) const {
    return boards_.status_lines(member).identity.value.load(std::memory_order_acquire);
  }

  const Boards& boards_;
  // This member's own, written in every operation.
  NoteLine* const notes_;
  std::atomic<std::uint64_t>& progress_;
};

}  // namespace seto::slots
