#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/control/channel/control_overlay.h"
#include "src/control/channel/tcp_control_channel.h"
#include "src/control/overlay/overlay_node.h"

namespace seto {

// The overlay of one attempt in this process, over the TCP channels to its peers. The hub keeps it: first while the process takes
// part, and then while others may be reached over this process.
class TcpControlOverlay final : public std::enable_shared_from_this<TcpControlOverlay>, private OverlayNode::Output {
 public:
  TcpControlOverlay(ControlChannelOwner& owner, const ControlOverlaySetup& setup);
  TcpControlOverlay(const TcpControlOverlay&) = delete;
  TcpControlOverlay& operator=(const TcpControlOverlay&) = delete;
  ~TcpControlOverlay() override;

  // ---- any thread, no lock of a channel held ----

  [[nodiscard]] AttemptId attempt() const { return attempt_; }
  [[nodiscard]] const std::vector<OverlayMember>& peers() const { return peers_; }
  void attach(OverlayMember peer, std::shared_ptr<TcpControlChannel> channel);
  [[nodiscard]] ControlChannel& channel_to(OverlayMember member);
  // This process says nothing more. Does not wait.
  void leave();
  // Blocks until all that it has said is heard, as far as it can be. Returns false at the deadline.
  [[nodiscard]] bool wait_until_left(Deadline until);

  // Tells that this process has left, if it leaves and its words were not all heard.
  void leave_unheard();

  // ---- control thread, no lock held ----

  // A failure means that the peer sends nonsense.
  [[nodiscard]] Status receive(const TcpControlChannel& channel, const ControlFrame& frame);
  void channel_ended(const TcpControlChannel& channel);
  void handle_attention();

 private:
  class Member;

  // OverlayNode::Output, with the lock held.
  void send(OverlayMember peer, const OverlayFrame& frame) override;
  void send_letter(OverlayMember to, ControlFrameKind kind, const HandlerName& handler, std::uint32_t from,
                   std::string_view bytes);
  void apply(const OverlayNode::Events& events);
  void answer(OverlayMember from, const RelayedLetter& letter);
  void lose(OverlayMember member, const std::string& why);
  void lose_edge(OverlayMember peer, const std::string& why);
  // Takes the next step of leaving, if it is time for it.
  void advance();

  ControlChannelOwner& owner_;
  const std::uint32_t generation_ = fork_generation();
  const AttemptId attempt_;
  const KeyId key_;
  std::vector<OverlayMember> peers_;
  std::map<Token, OverlayMember> by_process_;
  std::vector<std::unique_ptr<Member>> members_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  OverlayNode node_;
  std::map<OverlayMember, std::shared_ptr<TcpControlChannel>> edges_;
  std::vector<OverlayNode::Events::Loss> losses_;  // to be told by the control thread
  bool leaving_ = false;
  bool over_ = false;  // no member needs this one any more
};

}  // namespace seto
