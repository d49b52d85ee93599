#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/device/reduce.h"
#include "src/plan/local_program.h"
#include "transports/transport.h"

namespace seto {

// One send or receive with its memory, its number on the stream of the pair, and the header that both ends must agree on.
struct BoundTransfer {
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  MessageHeader header;
  std::uint64_t message = 0;
  PairSender* sender = nullptr;  // null: to this rank itself
  PairReceiver* receiver = nullptr;
};

// Runs a local program in readiness order: every lane continues as soon as it can, a piece at a time. Never blocks.
class TransferLaunch final {
 public:
  // `transfers`: in the order from which the program was made.
  TransferLaunch(std::shared_ptr<const LocalProgram> local, std::vector<BoundTransfer> transfers);

  // For a rank that chooses how bytes are written.
  void set_stores(Store slots, Store results) {
    slots_ = slots;
    results_ = results;
  }

  // Continues as far as possible, at most `pieces` pieces. Returns true once every step is done or refused.
  bool advance(std::uint32_t pieces);
  // Grows whenever a step was done or a piece has moved.
  [[nodiscard]] std::uint64_t moved() const { return moved_; }
  // False: each message with another rank still waits for an earlier one of its pair.
  [[nodiscard]] bool reached() const { return reached_; }

  // A transfer whose two ends disagree, and the header of the other end.
  struct Refused {
    std::uint32_t transfer;
    MessageHeader theirs;
  };
  [[nodiscard]] const std::vector<Refused>& refused() const { return refused_; }

  // The transfers at which lanes wait.
  [[nodiscard]] std::vector<std::uint32_t> waiting() const;

 private:
  struct LaneState {
    std::uint32_t step = 0;  // its index in the lane
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
  bool reached_ = false;
  Store slots_ = Store::cached;
  Store results_ = Store::cached;
};

}  // namespace seto
