#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transports/peer_group.h"
#include "transports/slots/board_status.h"
#include "transports/slots/boards.h"
#include "transports/slots/next_lines.h"
#include "transports/slots/slot_leases.h"

namespace seto::slots {

// The group of members that share memory, threads and processes alike. A stream is a ring of slots in the sender's segment and
// marks on the members' boards. One slot serves every receiver of a multicast.
class SlotPeerGroup final : public PeerGroup {
 public:
  static Result<std::unique_ptr<SlotPeerGroup>> create(PeerGroupSetup setup);
  ~SlotPeerGroup() override { leases_.give_back(); }

  [[nodiscard]] std::uint32_t members() const override { return boards_.layout().members(); }
  [[nodiscard]] PeerStatus& status() override { return status_; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  // The store of the progress line is the credit: senders reuse their lines and slots once they see it.
  void complete(std::uint64_t operation) override {
    done_ = operation;
    status_.complete(operation);
    next_lines_.fetch();
  }
  void depart() override;
  [[nodiscard]] Status failure() const override { return failure_; }
  // This failure may be found in the last release of an operation, when its streams are not asked again.
  [[nodiscard]] bool suspects() const override { return was_abandoned_; }

 private:
  friend class SlotSender;
  friend class SlotReceiver;
  friend class SlotPairSender;
  friend class SlotPairReceiver;

  explicit SlotPeerGroup(PeerGroupSetup setup);

  // All these members have completed everything up to that operation. Reads a board only if the cached value is too low.
  bool passed(std::span<const std::uint32_t> members, std::uint64_t operation);
  // A header of that member stated how many operations it has completed.
  void learn(std::uint32_t member, std::uint64_t done) { done_by_[member] = done > done_by_[member] ? done : done_by_[member]; }
  // Whether receivers report every slot of such a stream that they have read.
  [[nodiscard]] bool gives_every_slot_back(std::uint64_t slices, std::uint64_t stride) const;
  void fail(Status reason) {
    if (failure_.ok()) failure_ = std::move(reason);
  }

  Boards boards_;
  BoardStatus status_;
  SlotLeases leases_;
  std::uint64_t done_ = 0;              // operations this member has completed
  std::vector<std::uint64_t> done_by_;  // by member, as far as known here
  std::vector<std::uint32_t> others_;   // all members but this one
  std::uint64_t streams_ = 0;           // opened so far, to tell them apart
  std::size_t room_of_lease_ = 0;       // for slots that move on; 0: they stay where they are
  NextLines next_lines_;
  Status failure_;
  bool was_abandoned_ = false;  // a sender did not wait until this member had read what it lent
};

}  // namespace seto::slots
