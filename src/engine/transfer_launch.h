#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/device/reduce.h"
#include "src/plan/local_program.h"
#include "transports/transport.h"

namespace seto {

// One send or receive, bound: its memory, its number on the pair's stream, what both ends must agree on.
struct BoundTransfer {
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  Letter letter;
  std::uint64_t message = 0;
  PairSender* sender = nullptr;  // null: to this rank itself
  PairReceiver* receiver = nullptr;
};

// Runs a local program in readiness order: every lane goes on as soon as it can, a piece at a time. Never blocks.
class TransferLaunch final {
 public:
  // `transfers` in the order that the program was made from.
  TransferLaunch(std::shared_ptr<const LocalProgram> local, std::vector<BoundTransfer> transfers);

  // Where the rank chooses how bytes are written.
  void set_stores(Store slots, Store results) {
    slots_ = slots;
    results_ = results;
  }

  // Goes as far as it can, at most `pieces` pieces; true once every step is done or refused.
  bool advance(std::uint32_t pieces);
  // Grows whenever a step was done or a piece has moved.
  [[nodiscard]] std::uint64_t moved() const { return moved_; }

  // Transfers whose ends did not agree, and what the other end says of them.
  struct Refused {
    std::uint32_t transfer;
    Letter theirs;
  };
  [[nodiscard]] const std::vector<Refused>& refused() const { return refused_; }

  // The transfers that lanes wait at.
  [[nodiscard]] std::vector<std::uint32_t> waiting() const;

 private:
  struct LaneState {
    std::uint32_t step = 0;  // of the lane
    std::uint64_t done = 0;  // bytes of that step
  };

  bool advance_lane(const Lane& lane, LaneState& state);
  bool send(std::uint32_t transfer, LaneState& state);
  bool receive(std::uint32_t transfer, LaneState& state);
  void step_done(LaneState& state);

  std::shared_ptr<const LocalProgram> local_;
  std::vector<BoundTransfer> transfers_;
  std::vector<LaneState> lanes_;
  std::vector<Refused> refused_;
  std::uint64_t moved_ = 0;
  Store slots_ = Store::cached;
  Store results_ = Store::cached;
};

}  // namespace seto
