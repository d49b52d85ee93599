#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transports/slots/layout.h"
#include "transports/slots/pool.h"
#include "transports/transport.h"

namespace seto::slots {

// Another member, as its memory is mapped here.
struct Member {
  std::byte* segment = nullptr;
  std::size_t segment_size = 0;
  std::size_t board = 0;  // offset of its board for this circle
  // Its context sleeps: whoever writes what it may wait for rings. Null: it never sleeps in the kernel.
  std::atomic<std::uint32_t>* armed = nullptr;
  bool same_process = false;   // reads what is lent at its address
  std::uint64_t identity = 0;  // what it wrote on that board; 0: boards are never given back
  // Set when its process has ended: it reads nothing any more. Outlives the circle. Null: it never ends before this one.
  const std::atomic<bool>* dead = nullptr;
};

// Wakes a member that sleeps. Called from the data path, so it neither blocks nor allocates.
class Doorbell {
 public:
  virtual ~Doorbell() = default;
  virtual void ring(std::uint32_t member) = 0;
};

struct CircleSetup {
  std::uint32_t own = 0;  // index of this member
  std::uint32_t ports = 64;
  std::vector<Member> members;
  Pool* pool = nullptr;  // of the own segment
  Doorbell* doorbell = nullptr;
  const char* called = "member";         // what texts call a member: a user knows it by another name
  std::vector<std::uint32_t> numbers{};  // and by another number, which fates name too; empty: they are the same
};

// The owner of a new board, before others hear of it.
void put_identity(std::byte* board, const BoardLayout& layout, std::uint64_t identity);

// Streams as slot rings in the sender's segment and marks on the members' boards: what ranks of one machine share, threads and
// processes alike. One slot serves every receiver of a multicast.
class SlotCircle final : public Circle {
 public:
  static Result<std::unique_ptr<SlotCircle>> create(CircleSetup setup);
  ~SlotCircle() override;

  [[nodiscard]] std::uint32_t members() const override { return layout_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  [[nodiscard]] Mapping direct(std::uint32_t member) const override {
    return {setup_.members[member].segment, setup_.members[member].segment_size};
  }
  void begin(const Note& note) override;
  void complete(std::uint64_t operation) override;
  [[nodiscard]] std::uint64_t window() const override { return kWindow; }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override;
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override;
  void leave(Fate fate) override;
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override;
  void explain(std::string_view why) override;
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override;
  void depart() override;
  [[nodiscard]] bool departed(std::uint32_t member) const override;
  [[nodiscard]] Status failure() const override { return failure_; }

 private:
  friend class SlotSender;
  friend class SlotReceiver;
  friend class SlotPairSender;
  friend class SlotPairReceiver;

  // Slots for one target of a port; kept from operation to operation, whichever stream uses them. Of each there are two, as many
  // as operations under way; a stream that goes on in its own slots leaves the other one alone.
  struct Lease {
    std::size_t offset = 0;
    std::size_t size = 0;
    std::uint64_t operation = 0;  // the last that filled them
    std::uint64_t user = 0;       // the stream that did
  };

  // Of one port in one window. Empty until a stream uses it: a large circle has far more ports than any plan uses.
  struct PortUse {
    std::vector<Lease> leases;         // by target
    std::vector<std::uint64_t> users;  // by target: the stream that used the line last
  };

  explicit SlotCircle(CircleSetup setup);

  template <class Line>
  Line& line(std::uint32_t member, std::size_t at) const {
    const Member& m = setup_.members[member];
    return *reinterpret_cast<Line*>(m.segment + m.board + at);
  }
  // Have all these members completed everything up to that operation? Looks at their boards only if what is known does not do.
  bool passed(std::span<const std::uint32_t> members, std::uint64_t operation);
  void heard(std::uint32_t member, std::uint64_t done) { done_by_[member] = done > done_by_[member] ? done : done_by_[member]; }
  void wake(std::uint32_t member) const;
  [[nodiscard]] std::uint32_t number_of(std::uint32_t member) const {
    return setup_.numbers.empty() ? member : setup_.numbers[member];
  }
  void fail(Status reason) {
    if (failure_.ok()) failure_ = std::move(reason);
  }
  Lease& lease(std::uint64_t which, std::uint32_t port, std::uint32_t target);  // of the two: no window has one for itself
  PortUse& use_of(std::uint64_t which, std::uint32_t port);
  std::uint64_t& line_user(std::uint64_t window, std::uint32_t port, std::uint32_t target);
  bool grow(Lease& lease, std::size_t size);
  void give_back_slots();
  // It has left, or its process has ended: what it has not read by now it never will.
  [[nodiscard]] bool gone(std::uint32_t member) const;
  [[nodiscard]] std::uint64_t identity_on_board(std::uint32_t member) const;
  [[nodiscard]] bool still_read(std::uint32_t target, std::uint64_t operation) const;

  CircleSetup setup_;
  BoardLayout layout_;
  std::uint64_t done_ = 0;              // operations this member has completed
  std::vector<std::uint64_t> done_by_;  // as far as known here
  std::vector<PortUse> in_use_;         // [which of two][port]
  std::vector<std::uint32_t> others_;   // all members but this one
  std::uint64_t streams_ = 0;           // opened so far, to tell them apart
  Status failure_;
};

}  // namespace seto::slots
