#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "src/base/result.h"
#include "transports/geometry.h"
#include "transports/pair_streams.h"
#include "transports/peer_status.h"
#include "transports/streams.h"

namespace seto {

// The members 0 ... n - 1 of one communicator that a transport connects, with their streams. A transport moves opaque bytes and
// knows nothing of collectives.
//
// No call blocks, calls back, or (except open_*) allocates memory. All calls of one group come from one thread at a time, except
// where PeerStatus says otherwise. The thread may change between calls if the calls are ordered; the context's progress token
// orders them.
class PeerGroup {
 public:
  virtual ~PeerGroup() = default;

  [[nodiscard]] virtual std::uint32_t members() const = 0;
  // The status that members publish about themselves.
  [[nodiscard]] virtual PeerStatus& status() = 0;

  // ---- streams ----

  // A stream is opened when a launch is bound, and used for any number of operations. Every stream ends before the group.
  virtual Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                        const StreamGeometry& geometry) = 0;
  virtual Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) = 0;
  // At most one sender and one receiver per member.
  virtual Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) = 0;
  virtual Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) = 0;

  // ---- operations: a member may begin operation k + kWindow only after every other member has completed operation k ----

  // Called before complete(): the operation failed here, and its messages that were not read are no error.
  virtual void disregard(std::uint64_t operation) { (void)operation; }
  // This member has ended all operations up to this one and reads no message of them any more. Returns their credit to the
  // senders and publishes the number in the status.
  virtual void complete(std::uint64_t operation) = 0;
  // The last call after PeerStatus::leave, when all streams have ended: from now on this member reads only fates. Gives memory
  // back that no member reads any more; a repeated call tries again for the rest.
  virtual void depart() {}

  // ---- failure ----

  // The first error of these streams: a header that disagrees with the expected one, or malformed input.
  [[nodiscard]] virtual Status failure() const = 0;
  // A message arrived that fits no call of this member. failure() will report it soon, with the reason if the sender gives one.
  [[nodiscard]] virtual bool suspects() const { return false; }
};

}  // namespace seto
