#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "transports/peer_group_seat.h"
#include "transports/shm/context_memory.h"
#include "transports/shm/numa_nodes.h"
#include "transports/slots/pool.h"
#include "transports/slots/status_lines.h"

namespace seto {

// Where other members find this member: what a seat announces.
struct BoardAddress {
  std::uint64_t board = 0;         // offset in the segment
  std::uint64_t status_lines = 0;  // offset in the segment
  std::uint64_t identity = 0;      // a random number, which tells the owner of the lines from later owners
  std::int64_t node = -1;          // the NUMA node of the member's cores; negative: it may run on several
};

// A board and status lines in a context's memory, which other members read. The destructor gives them back, unless keep() was
// called; a member that looks later sees that this one has departed, also if it never joined.
class Board final {
 public:
  Board(slots::Pool& pool, slots::StatusLines& lines, const BoardAddress& address, std::size_t size)
      : pool_(&pool), lines_(&lines), address_(address), size_(size) {}
  Board(Board&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), lines_(other.lines_), address_(other.address_), size_(other.size_) {}
  Board& operator=(Board&&) = delete;
  ~Board() {
    if (pool_ == nullptr) return;
    lines_->identity.value.store(0, std::memory_order_release);
    pool_->give_back_board(address_.board, size_);
    pool_->give_back_status_lines(address_.status_lines);
  }

  [[nodiscard]] const BoardAddress& address() const { return address_; }
  void keep() { pool_ = nullptr; }

 private:
  slots::Pool* pool_;
  slots::StatusLines* lines_;
  BoardAddress address_;
  std::size_t size_;
};

// A place in a peer group of contexts that share memory.
class ShmSeat final : public PeerGroupSeat {
 public:
  // The pool and the nodes outlive the seat and the group. The calling thread runs on the cores of the member.
  static Result<std::unique_ptr<PeerGroupSeat>> reserve(std::shared_ptr<const ContextMemory> memory, slots::Pool& pool,
                                                        const GroupSize& size, const NumaNodes& nodes = NumaNodes::of_machine());

  [[nodiscard]] std::string announcement() const override;
  [[nodiscard]] Result<std::shared_ptr<PeerGroup>> join(GroupMembers members) override;

 private:
  ShmSeat(std::shared_ptr<const ContextMemory> memory, slots::Pool& pool, const NumaNodes& nodes, std::uint32_t ports,
          Board board)
      : memory_(std::move(memory)), pool_(pool), nodes_(nodes), ports_(ports), board_(std::move(board)) {}

  std::shared_ptr<const ContextMemory> memory_;
  slots::Pool& pool_;
  const NumaNodes& nodes_;
  std::uint32_t ports_;
  Board board_;
};

}  // namespace seto
