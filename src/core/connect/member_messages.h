#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/control/channel/control_channels.h"
#include "src/core/connect/connected_ranks.h"

namespace seto {

// Short messages between the ranks of a communicator on several hosts, over the control channels that they have anyway: they
// arrive whatever the calls of a rank are doing. Two ranks of one host have no channel: their messages pass through a rank of
// another host. Any thread; no call blocks.
class MemberMessages final {
 public:
  // Called on the control thread: must be short and must not block, and may send.
  using Receive = std::function<void(Rank from, std::string_view bytes)>;

  // All ranks are registered before any of them sends, if each opens before it contributes to a round of the bootstrap.
  static Result<std::unique_ptr<MemberMessages>> open(const ConnectedRanks& ranks, const Config& config, Receive receive);
  MemberMessages(const MemberMessages&) = delete;
  MemberMessages& operator=(const MemberMessages&) = delete;

  // Bytes for a rank that has ended are dropped. They arrive in order.
  void send(Rank to, std::string_view bytes) const;

 private:
  MemberMessages(const ConnectedRanks& ranks, Receive receive);
  void pass(Rank from, Rank to, Rank through, std::string_view bytes) const;
  void arrived(std::uint32_t from, std::string_view bytes) const;

  const std::uint64_t key_;
  const Rank own_;
  const Receive receive_;
  std::vector<ControlChannel*>
      channels_;       // by rank; null: this rank, and ranks of this host. The connections outlive this object
  Rank between_ = -1;  // a rank of another host, through which ranks of this host are reached
  MessageHandlers::Registration handler_;  // last: destroyed before what it uses
};

}  // namespace seto
