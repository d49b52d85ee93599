// The overlays of a process.

#include <utility>

#include "src/control/channel/control_channel_hub.h"
#include "src/control/channel/tcp_control_overlay.h"

namespace seto {
namespace {

// The part that users hold. With its last user the process leaves the overlay.
class OverlayUse final : public ControlOverlay, public std::enable_shared_from_this<OverlayUse> {
 public:
  explicit OverlayUse(std::shared_ptr<TcpControlOverlay> overlay) : overlay_(std::move(overlay)) {}
  OverlayUse(const OverlayUse&) = delete;
  OverlayUse& operator=(const OverlayUse&) = delete;
  ~OverlayUse() override { overlay_->leave(); }

  [[nodiscard]] const std::vector<OverlayMember>& peers() const override { return overlay_->peers(); }
  void attach(OverlayMember peer, std::shared_ptr<ControlChannel> channel) override {
    overlay_->attach(peer, std::static_pointer_cast<TcpControlChannel>(std::move(channel)));
  }
  [[nodiscard]] std::shared_ptr<ControlChannel> channel_to(OverlayMember member) override {
    return {shared_from_this(), &overlay_->channel_to(member)};
  }

 private:
  const std::shared_ptr<TcpControlOverlay> overlay_;
};

}  // namespace

Result<std::shared_ptr<ControlOverlay>> ControlChannelHub::join_overlay(const ControlOverlaySetup& setup) {
  if (generation_ != fork_generation()) return used_in_forked_child();
  const std::lock_guard lock(mutex_);
  Overlay& one = overlays_[setup.attempt];
  if (one.overlay != nullptr) {
    if (auto use = one.use.lock()) return use;
    return failure(Code::internal, "this process has left the overlay of the attempt");
  }
  ControlChannelOwner& owner = *this;
  one.overlay = std::make_shared<TcpControlOverlay>(owner, setup);
  const auto use = std::make_shared<OverlayUse>(one.overlay);
  one.use = use;
  return std::shared_ptr<ControlOverlay>(use);
}

std::shared_ptr<TcpControlOverlay> ControlChannelHub::overlay_of(AttemptId attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = overlays_.find(attempt);
  return found == overlays_.end() ? nullptr : found->second.overlay;
}

std::vector<std::shared_ptr<TcpControlOverlay>> ControlChannelHub::all_overlays() {
  std::vector<std::shared_ptr<TcpControlOverlay>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [attempt, one] : overlays_) all.push_back(one.overlay);
  return all;
}

// A process that has no overlay of the attempt, or none any more, passes nothing on.
Status ControlChannelHub::pass_on(const TcpControlChannel& channel, const ControlFrame& frame) {
  const auto overlay = overlay_of(frame.key);
  return overlay == nullptr ? Status() : overlay->receive(channel, frame);
}

void ControlChannelHub::overlay_needs_attention(std::weak_ptr<TcpControlOverlay> overlay) {
  {
    const std::lock_guard lock(mutex_);
    waiting_overlays_.push_back(std::move(overlay));
  }
  wake_up();
}

void ControlChannelHub::overlay_over(AttemptId attempt) {
  Overlay over;  // ends without the lock
  const std::lock_guard lock(mutex_);
  const auto found = overlays_.find(attempt);
  if (found == overlays_.end()) return;
  over = std::move(found->second);
  overlays_.erase(found);
}

void ControlChannelHub::finish_overlays(Deadline until) {
  if (generation_ != fork_generation()) return;
  for (const auto& overlay : all_overlays())
    if (!overlay->wait_until_left(until)) overlay->leave_unheard();
}

}  // namespace seto
