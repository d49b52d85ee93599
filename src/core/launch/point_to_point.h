#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/launch/store_tuner.h"
#include "src/core/progress/task.h"
#include "src/core/record/flight_recorder.h"
#include "src/engine/transfer_launch.h"
#include "src/plan/local_program.h"
#include "transports/transport.h"

namespace seto {

// One send or receive as the caller states it.
struct Transfer {
  LocalTransfer::Direction direction = LocalTransfer::Direction::send;
  Rank peer = 0;
  const void* source = nullptr;
  void* target = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::float32;
  Status wrong;           // an error that the caller detected already
  std::uint32_t tag = 0;  // tag of the message, the same on both sides
};

// The kind of a set of transfers. Only transfers of one kind match each other.
enum class TransferKind : std::uint8_t { point_to_point, all_to_all_v };

struct TransferCall {
  std::span<const Transfer> transfers;
  TransferKind kind = TransferKind::point_to_point;
  std::uint32_t deadline_ms = 0;    // 0: the communicator's deadline
  std::optional<Deadline> until{};  // replaces it; it can be stopped
  CallerMark mark{};
};

// A receive from the first rank that sends. The peer of the transfer is ignored.
struct ReceiveAnyCall {
  Transfer transfer;
  Rank* source = nullptr;         // the sender, once it is known
  std::uint32_t deadline_ms = 0;  // 0: the communicator's deadline; it applies to the wait, and again to the transfer
  CallerMark mark{};
};

// Checks a transfer alone. The error text names the argument.
Status check(const Transfer& transfer, int ranks);
// Rejects a send to the same rank outside a group, which can never be received.
Status refuse_lone_self(const Transfer& transfer, Rank rank);

// Makes the transfers of an all_to_all with parts of any length; empty parts need none. Counts and displacements have `ranks`
// elements; without displacements the parts are contiguous.
struct PartTable {
  std::span<const std::uint64_t> counts;
  std::span<const std::uint64_t> displacements;
};
struct ExchangeCall {
  const void* input = nullptr;
  void* output = nullptr;
  PartTable sends;
  PartTable receives;
  DataType type = DataType::float32;
  Status wrong;
};
std::vector<Transfer> transfers_of(const ExchangeCall& call, int ranks);

// "send of 1024 float to rank 3"
std::string describe(LocalTransfer::Direction direction, const MessageHeader& header, Rank peer);

// A bound call, ready for a task.
struct PreparedTransfers {
  std::unique_ptr<TransferLaunch> launch;  // null: no transfer can be run
  std::vector<LocalTransfer> transfers;    // the transfers that run
  std::vector<MessageHeader> headers;
  std::vector<Status> rejections;  // by transfer; ok where it was not rejected
  Status first_wrong;              // the first rejection among all transfers of the caller
  StoreTuner* stores = nullptr;    // null: too small to matter
  std::uint64_t exchange = 0;      // the number of an all_to_all_v; 0: sends and receives
};

// The messages between this rank and the other ranks of one communicator: their streams and numbers. The calling thread uses it;
// the token holder uses the streams once a task runs.
class PointToPoint final {
 public:
  PointToPoint(Rank rank, int ranks, PeerGroup& peer_group, SlotStore slots);

  void use(const StoreSizes& sizes);  // while no call is under way
  PreparedTransfers prepare(const TransferCall& call);

  // all_to_all_v calls begin in the order of their numbers, like every collective.
  [[nodiscard]] TaskSequence& exchanges() { return exchange_tasks_; }

  // Opens the streams to all other ranks, so that a message of any rank may be received. Later calls do nothing.
  Status open_all();

  // Both streams of the messages with a peer, opened at the first call. They exist once and count all messages, so a caller that
  // moves messages by them prepares none here.
  struct Ends {
    PairSender* sender = nullptr;
    PairReceiver* receiver = nullptr;
  };
  Result<Ends> ends_of(Rank peer);

  // Whether that peer has begun to send a message for which no receive was issued. Called by the token holder.
  [[nodiscard]] bool has_pending(Rank peer) const;
  // Returns the receive of the message that its peer has begun to send with the same tag, unless a receive was issued for it
  // already, or it belongs to an all-to-all.
  std::optional<PreparedTransfers> take_waiting(const Transfer& receive);

 private:
  struct Pair {
    std::unique_ptr<PairSender> sender;
    std::unique_ptr<PairReceiver> receiver;
    std::uint64_t sent = 0;                   // number of sends numbered so far
    std::atomic<std::uint64_t> received = 0;  // the same for receives; the token holder numbers some too
  };

  Status accept(const Transfer& transfer, std::uint64_t label, PreparedTransfers& prepared);
  Status bind(const Transfer& transfer, BoundTransfer& bound);
  Status open(Rank peer);
  Status check_self(const TransferCall& call) const;
  Result<std::shared_ptr<const LocalProgram>> program_for(const std::vector<LocalTransfer>& transfers);

  Rank rank_;
  int ranks_;
  PeerGroup& peer_group_;
  std::vector<Pair> pairs_;
  std::vector<BoundTransfer> bound_;  // transfers of the present call
  bool all_open_ = false;
  std::uint64_t exchanges_ = 0;  // number of all_to_all_v calls, which their messages carry
  TaskSequence exchange_tasks_;
  // The last program is kept, because programs repeat and making one costs more than a short message.
  std::vector<LocalTransfer> last_transfers_;
  std::shared_ptr<const LocalProgram> last_program_;
  SlotStore slot_store_;
  StoreSizes store_sizes_;
  std::map<int, StoreTuner> stores_;  // by power of two of the bytes of a call
};

}  // namespace seto
