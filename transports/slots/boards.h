#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "transports/slots/layout.h"
#include "transports/slots/lendable_memory.h"
#include "transports/slots/pool.h"

namespace seto::slots {

// One member of the group, with its memory as it is mapped here.
struct Member {
  std::byte* segment = nullptr;
  std::size_t segment_size = 0;
  std::size_t board = 0;         // offset of the member's board for this group
  std::size_t status_lines = 0;  // offset of its StatusLines
  // Not 0 while the member's context sleeps: a member that writes something for which it may wait wakes it. Null: the member
  // never sleeps in the kernel.
  std::atomic<std::uint32_t>* armed = nullptr;
  bool same_process = false;   // the member can read lent memory at its address
  std::uint64_t identity = 0;  // the random number in its StatusLines; 0: boards are never given back
  // Set when the member's process has ended: it reads nothing any more. Outlives the group. Null: the process cannot end first.
  const std::atomic<bool>* dead = nullptr;
  // Counts what members of the member's groups tell it of their departures. It belongs to the context, whose memory is never
  // given back: a member that was frozen may come late, when the board has another owner. Null: no member is notified.
  std::atomic<std::uint32_t>* departures = nullptr;
  // Set when the member's process stands still: it may go on later. Null: it cannot, or it reads nothing that is lent.
  const std::atomic<bool>* frozen = nullptr;
  LendingPartner* partner = nullptr;  // the member's process; null: it lends nothing to this one, or it is this one
  int node = kAnyNode;                // the NUMA node on which the member runs, if the machine has several
};

// Wakes a sleeping member. Called from the data path, so it neither blocks nor allocates memory.
class Doorbell {
 public:
  virtual ~Doorbell() = default;
  virtual void ring(std::uint32_t member) = 0;
};

struct PeerGroupSetup {
  std::uint32_t own = 0;  // index of this member
  std::uint32_t ports = 64;
  std::vector<Member> members;
  Pool* pool = nullptr;  // of this member's own segment
  Doorbell* doorbell = nullptr;
  const char* called = "member";             // the word for a member in texts: users know it as a rank
  const LendableMemory* lendable = nullptr;  // of this process; null: there is none
  std::size_t room_to_move_on = 0;           // bytes in which the slots of successive operations move on
  std::vector<std::uint32_t> numbers{};      // the number of a member in texts and fates; empty: its index
};

// Access to the boards of all members of a group, and the way to wake their readers.
class Boards final {
 public:
  explicit Boards(PeerGroupSetup setup)
      : setup_(std::move(setup)), layout_(static_cast<std::uint32_t>(setup_.members.size()), setup_.ports) {}

  [[nodiscard]] const PeerGroupSetup& setup() const { return setup_; }
  [[nodiscard]] const BoardLayout& layout() const { return layout_; }
  [[nodiscard]] std::uint32_t own() const { return setup_.own; }
  [[nodiscard]] const Member& member(std::uint32_t index) const { return setup_.members[index]; }
  [[nodiscard]] std::byte* own_segment() const { return setup_.members[setup_.own].segment; }

  template <class Line>
  [[nodiscard]] Line& line(std::uint32_t member, std::size_t at) const {
    const Member& m = setup_.members[member];
    return *reinterpret_cast<Line*>(m.segment + m.board + at);
  }

  [[nodiscard]] StatusLines& status_lines(std::uint32_t member) const {
    const Member& m = setup_.members[member];
    return *reinterpret_cast<StatusLines*>(m.segment + m.status_lines);
  }

  void wake(std::uint32_t member) const {
    const Member& peer = setup_.members[member];
    // The member that goes to sleep executes the matching barrier: see ShmTransport::arm.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (peer.armed != nullptr && peer.armed->load(std::memory_order_relaxed) != 0) setup_.doorbell->ring(member);
  }
  void wake_others() const {
    for (std::uint32_t member = 0; member < layout_.members(); ++member)
      if (member != setup_.own) wake(member);
  }

  // The NUMA node on which all these members run, or kAnyNode.
  [[nodiscard]] int node_of(std::span<const std::uint32_t> members) const {
    const int node = setup_.members[members.front()].node;
    const auto is_there = [&](std::uint32_t index) { return setup_.members[index].node == node; };
    return std::all_of(members.begin(), members.end(), is_there) ? node : kAnyNode;
  }

  [[nodiscard]] const char* called() const { return setup_.called; }
  [[nodiscard]] std::uint32_t number_of(std::uint32_t member) const {
    return setup_.numbers.empty() ? member : setup_.numbers[member];
  }

 private:
  PeerGroupSetup setup_;
  BoardLayout layout_;
};

}  // namespace seto::slots
