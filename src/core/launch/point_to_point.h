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
#include "src/core/record/flight_recorder.h"
#include "src/core/launch/store_tuner.h"
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
  Status wrong;           // what the caller found already
  std::uint32_t tag = 0;  // of a message: the same on both sides
};

// Why transfers belong together: only those of one kind match each other.
enum class TransferKind : std::uint8_t { point_to_point, all_to_all_v };

struct TransferCall {
  std::span<const Transfer> transfers;
  TransferKind kind = TransferKind::point_to_point;
  std::uint32_t deadline_ms = 0;    // 0: the communicator's
  std::optional<Deadline> until{};  // in place of that, and it may be given up
  CallerMark mark{};
};

// A receive from whoever sends first. The peer of the transfer is not asked.
struct ReceiveAnyCall {
  Transfer transfer;
  Rank* source = nullptr;         // who it was, once that is known
  std::uint32_t deadline_ms = 0;  // 0: the communicator's; of the wait, and again of the transfer
  CallerMark mark{};
};

// Whether a transfer makes sense by itself. The text names the argument.
Status check(const Transfer& transfer, int ranks);
// A send to oneself that is not in a group can never be received.
Status refuse_lone_self(const Transfer& transfer, Rank rank);

// Makes the transfers of an all_to_all with parts of any length; empty parts move nothing. Counts and displacements are of
// `ranks` elements; without displacements parts follow one another.
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
std::string describe(LocalTransfer::Direction direction, const Letter& letter, Rank peer);

// A call that is bound: what a task runs.
struct PreparedTransfers {
  std::unique_ptr<TransferLaunch> launch;  // null: nothing can be run
  std::vector<LocalTransfer> transfers;    // those that run
  std::vector<Letter> letters;
  std::vector<Status> rejections;  // by transfer; ok where it was not rejected
  Status first_wrong;              // of all that the caller passed
  StoreChoice* stores = nullptr;   // null: too small to matter
};

// The messages between this rank and the others of one communicator: their streams and numbers. The calling thread's; the streams
// themselves are the token holder's once a task runs.
class Transfers final {
 public:
  Transfers(Rank rank, int ranks, Circle& circle, SlotStore slots);

  PreparedTransfers prepare(const TransferCall& call);

  // So that a message of every other rank may be taken. Once all are open nothing is done.
  Status open_all();

  // The token holder's. Has that peer begun to send something that nobody receives?
  [[nodiscard]] bool knocks(Rank peer) const;
  // The receive of the message that its peer has begun to send under the same tag, unless one was issued for it already; it
  // belongs to no all-to-all.
  std::optional<PreparedTransfers> take_waiting(const Transfer& receive);

 private:
  struct Pair {
    std::unique_ptr<PairSender> sender;
    std::unique_ptr<PairReceiver> receiver;
    std::uint64_t sent = 0;                   // numbers given
    std::atomic<std::uint64_t> received = 0;  // likewise; who holds the token gives some, too
  };

  Status accept(const Transfer& transfer, std::uint64_t label, PreparedTransfers& prepared);
  Status bind(const Transfer& transfer, BoundTransfer& bound);
  Status open(Rank peer);
  Status check_self(const TransferCall& call) const;
  Result<std::shared_ptr<const LocalProgram>> program_for(const std::vector<LocalTransfer>& transfers);

  Rank rank_;
  int ranks_;
  Circle& circle_;
  std::vector<Pair> pairs_;
  std::vector<BoundTransfer> bound_;  // of the call at hand
  bool all_open_ = false;
  std::uint64_t exchanges_ = 0;  // all_to_all_v calls: their messages carry the number
  // Programs repeat, and cost more than a short message to make.
  std::vector<LocalTransfer> last_transfers_;
  std::shared_ptr<const LocalProgram> last_program_;
  SlotStore slot_store_;
  std::map<int, StoreChoice> stores_;  // by power of two of the bytes of a call
};

}  // namespace seto
