#include "src/core/device_relay/message_relay.h"

#include <string>
#include <utility>
#include <vector>

#include "src/core/device_relay/kept_by_graphs.h"
#include "src/core/progress/call_deadline.h"

namespace seto {
namespace {

constexpr std::uint32_t kWithEachPeer = 16;  // pieces at once, so that other tasks of the context get their turn
constexpr std::uint64_t kWaitMs = 100;

}  // namespace

// Moves messages until no launch needs it. The next one makes another.
class MessageRelay::Mover final : public Task {
 public:
  explicit Mover(MessageRelay& relay) : relay_(relay) {}

  Step advance() override {
    if (inspect()) return Step::ended;
    const Result<bool> moved = relay_.move();
    if (!moved.ok()) {
      relay_.control_.fail(moved.status(), relay_.control_.rank());
      return inspect() ? Step::ended : Step::blocked;
    }
    if (moved.value()) return Step::moved;
    return end_if_idle() ? Step::ended : Step::blocked;
  }
  bool inspect() override {
    relay_.judge_replays();
    if (!relay_.control_.failed()) return false;
    end(relay_.control_.first_failure());
    return true;
  }
  bool give_up(const Status& reason) override {
    relay_.control_.fail(reason, relay_.control_.rank());
    return false;
  }

 private:
  // A launch that begins now either sees that the task has ended, or is seen here.
  bool end_if_idle() {
    const std::shared_ptr<Gate> gate = relay_.gate_;
    const std::lock_guard lock(gate->mutex);
    if (!relay_.may_end()) return false;
    end({});
    return true;
  }

  MessageRelay& relay_;
};

class MessageRelay::Use {
 public:
  explicit Use(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  ~Use() {
    const std::lock_guard lock(gate_->mutex);
    if (gate_->relay != nullptr) gate_->relay->end_use();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  const std::shared_ptr<Gate> gate_;
};

class MessageRelay::Replay {
 public:
  explicit Replay(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}

  void begin() { tell(&MessageRelay::begin_replay); }
  void end() { tell(&MessageRelay::end_replay); }

 private:
  void tell(void (MessageRelay::*change)()) {
    const std::lock_guard lock(gate_->mutex);
    if (gate_->relay == nullptr) return;
    (gate_->relay->*change)();
    gate_->relay->on_launch_of_graph_();
  }

  const std::shared_ptr<Gate> gate_;
};

Result<std::unique_ptr<MessageRelay>> MessageRelay::create(Communicator& control, const Staging& staging,
                                                           std::function<void()> on_launch_of_graph) {
  SETO_ASSIGN(const TransferArea area, TransferArea::of(static_cast<std::size_t>(control.ranks()), 0));
  return std::unique_ptr<MessageRelay>(new MessageRelay(control, staging, area, std::move(on_launch_of_graph)));
}

MessageRelay::MessageRelay(Communicator& control, const Staging& staging, const TransferArea& area,
                           std::function<void()> on_launch_of_graph)
    : control_(control),
      on_launch_of_graph_(std::move(on_launch_of_graph)),
      messages_(control.rank(), static_cast<std::size_t>(control.ranks()), area, staging.memory() + kStagedMessages),
      gate_(std::make_shared<Gate>()) {
  gate_->relay = this;
}

MessageRelay::~MessageRelay() { close(); }

// The communicator has one pair of streams with each rank, whose numbers go on from launch to launch.
Status MessageRelay::open(Rank peer) {
  if (messages_.is_open(peer)) return {};
  SETO_ASSIGN(const PointToPoint::Ends ends, control_.transfers().ends_of(peer));
  messages_.open(peer, *ends.sender, *ends.receiver);
  return {};
}

Result<MessageRelay::Hold> MessageRelay::hold(std::span<const Rank> peers, LaunchKind kind) {
  if (peers.empty()) return Hold{};
  for (const Rank peer : peers) SETO_TRY(open(peer));
  if (kind == LaunchKind::once) {
    const std::lock_guard lock(gate_->mutex);
    begin_use();
    return Hold{std::make_shared<Use>(gate_), nullptr};
  }
  Hold hold{nullptr, std::unique_ptr<Replay, DropReplay>(new Replay(gate_))};
  KeptByGraphs<Replay>::add(hold.replay.get());
  return hold;
}

void MessageRelay::DropReplay::operator()(Replay* replay) const {
  KeptByGraphs<Replay>::remove(replay);
  delete replay;
}

void MessageRelay::run_before(void* replay) { static_cast<Replay*>(replay)->begin(); }
void MessageRelay::run_after(void* replay) { static_cast<Replay*>(replay)->end(); }

void MessageRelay::begin_use() {
  ++uses_;
  end_until_.reset();
  if (mover_ != nullptr && !mover_->ended()) return;
  mover_ = std::make_unique<Mover>(*this);
  control_.context()->progress().join(*mover_);
}

// The watcher lets the task end: it looks as long as that has not.
void MessageRelay::end_use() { --uses_; }

// The watcher does not see them, so the task judges their deadline.
void MessageRelay::begin_replay() {
  if (replays_++ == 0) replays_until_ = Deadline::after_ms(CallDeadline(0, control_.config()).ms());
  begin_use();
}

void MessageRelay::end_replay() {
  replays_until_.reset();
  if (--replays_ > 0) replays_until_ = Deadline::after_ms(CallDeadline(0, control_.config()).ms());
  end_use();
}

void MessageRelay::judge_replays() {
  {
    const std::lock_guard lock(gate_->mutex);
    if (control_.failed() || !replays_until_ || !replays_until_->passed()) return;
  }
  control_.fail(failure(Code::timeout, "sends and receives of a graph on rank %d did not end within %s", control_.rank(),
                        CallDeadline(0, control_.config()).text().c_str()),
                control_.rank());
}

bool MessageRelay::may_end() { return is_closed_ || (uses_ == 0 && !messages_.has_untaken()); }

bool MessageRelay::is_busy() const {
  const std::lock_guard lock(gate_->mutex);
  return mover_ != nullptr && !mover_->ended();
}

Result<bool> MessageRelay::move() {
  const Members& members = control_.members();
  for (Rank peer = 0; peer < members.ranks(); ++peer)
    if (members.has_left(peer) || members.is_dead(peer)) messages_.leave(peer);
  return messages_.advance(kWithEachPeer);
}

void MessageRelay::check_end() {
  const CallDeadline limit(0, control_.config());
  {
    const std::lock_guard lock(gate_->mutex);
    if (mover_ == nullptr || mover_->ended()) return;
    if (!end_until_) end_until_ = Deadline::after_ms(limit.ms());
    if (!end_until_->passed()) return;
  }
  const Rank peer = messages_.first_untaken();
  if (peer == RelayedMessages::kNoRank)
    return control_.fail(
        failure(Code::timeout, "rank %d ends its communicator, and sends and receives of a graph have not ended within %s",
                control_.rank(), limit.text().c_str()),
        control_.rank());
  control_.fail(
      failure(Code::timeout, "rank %d ends its communicator, and what it has sent to rank %d was not received within %s",
              control_.rank(), peer, limit.text().c_str()),
      control_.rank());
}

void MessageRelay::close() {
  {
    const std::lock_guard lock(gate_->mutex);
    gate_->relay = nullptr;
    is_closed_ = true;
  }
  if (mover_ == nullptr) return;
  while (!control_.context()->progress().wait(*mover_, Deadline::after_ms(kWaitMs))) continue;
}

}  // namespace seto
