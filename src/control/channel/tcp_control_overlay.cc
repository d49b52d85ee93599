#include "src/control/channel/tcp_control_overlay.h"

#include <chrono>
#include <utility>

#include "src/base/check.h"

namespace seto {
namespace {

OverlayGraph graph_of(const ControlOverlaySetup& setup) {
  std::vector<OverlayPlace> places;
  for (const ControlOverlaySetup::Member& member : setup.members) places.push_back(member.place);
  return OverlayGraph(std::move(places));
}

ControlFrameKind frame_kind(OverlayFrameKind kind) {
  switch (kind) {
    case OverlayFrameKind::relayed:
      return ControlFrameKind::relayed;
    case OverlayFrameKind::edge_lost:
      return ControlFrameKind::edge_lost;
    case OverlayFrameKind::left:
      break;
  }
  return ControlFrameKind::member_left;
}

OverlayFrameKind overlay_kind(ControlFrameKind kind) {
  if (kind == ControlFrameKind::relayed) return OverlayFrameKind::relayed;
  return kind == ControlFrameKind::edge_lost ? OverlayFrameKind::edge_lost : OverlayFrameKind::left;
}

}  // namespace

// Another member, as a channel. The lock of the overlay covers what is not constant or atomic.
class TcpControlOverlay::Member final : public ControlChannel {
 public:
  Member(TcpControlOverlay& overlay, OverlayMember number) : overlay_(overlay), number_(number) {}

  [[nodiscard]] const std::atomic<bool>& dead() const override { return dead_; }
  [[nodiscard]] std::string why() const override {
    const std::lock_guard lock(overlay_.mutex_);
    return why_;
  }
  void ask_kernel(const std::function<void(int descriptor)>& question) const override {
    if (const auto edge = own_channel()) edge->ask_kernel(question);
  }
  void at_site(std::string_view name, std::uint64_t patience_ms) override {
    if (const auto edge = own_channel()) edge->at_site(name, patience_ms);
  }
  [[nodiscard]] std::unique_ptr<OnDeath> on_death(std::function<void()> callback) override {
    auto registration = std::make_unique<DeathCallback>(overlay_.owner_.deaths(), std::move(callback));
    bool late = false;
    {
      const std::lock_guard lock(overlay_.mutex_);
      deaths_.push_back(registration->id());
      late = dead_.load(std::memory_order_relaxed);
      if (late) overlay_.losses_.push_back({number_, {}});
    }
    if (late) overlay_.owner_.overlay_needs_attention(overlay_.weak_from_this());
    return registration;
  }
  void ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) override {
    overlay_.send_letter(number_, ControlFrameKind::ask, {key, to_member}, from_member, {});
  }
  void send_message(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) override {
    overlay_.send_letter(number_, ControlFrameKind::message, {key, to_member}, from_member, bytes);
  }

 private:
  friend class TcpControlOverlay;
  [[nodiscard]] std::shared_ptr<TcpControlChannel> own_channel() const {
    const std::lock_guard lock(overlay_.mutex_);
    const auto found = overlay_.edges_.find(number_);
    return found == overlay_.edges_.end() ? nullptr : found->second;
  }

  TcpControlOverlay& overlay_;
  const OverlayMember number_;
  std::atomic<bool> dead_{false};
  std::string why_;
  std::vector<std::uint64_t> deaths_;
};

TcpControlOverlay::TcpControlOverlay(ControlChannelOwner& owner, const ControlOverlaySetup& setup)
    : owner_(owner), attempt_(setup.attempt), key_(key_id(setup.key)), node_(graph_of(setup), setup.own, *this) {
  peers_ = node_.routes().graph().peers(setup.own);
  for (OverlayMember number = 0; number < setup.members.size(); ++number) {
    by_process_.emplace(setup.members[number].process, number);
    members_.push_back(std::make_unique<Member>(*this, number));
  }
}

TcpControlOverlay::~TcpControlOverlay() = default;

ControlChannel& TcpControlOverlay::channel_to(OverlayMember member) { return *members_[member]; }

void TcpControlOverlay::attach(OverlayMember peer, std::shared_ptr<TcpControlChannel> channel) {
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [edge, fresh] = edges_.emplace(peer, std::move(channel));
    SETO_CHECK(fresh);
    node_.attach(peer);
    ended = !edge->second->live();
  }
  if (ended) owner_.overlay_needs_attention(weak_from_this());
}

void TcpControlOverlay::send(OverlayMember peer, const OverlayFrame& frame) {
  edges_.at(peer)->send({frame_kind(frame.kind), frame.from, attempt_, frame.to, frame.bytes});
}

// Letters get their numbers in the order in which they are sent, so both happen under the lock.
void TcpControlOverlay::send_letter(OverlayMember to, ControlFrameKind kind, const HandlerName& handler, std::uint32_t from,
                                    std::string_view bytes) {
  if (generation_ != fork_generation()) return;
  SETO_CHECK(bytes.size() <= kMessageLimit);
  const bool must_arrive = kind == ControlFrameKind::message;
  {
    const std::lock_guard lock(mutex_);
    const RelayedLetter letter{static_cast<std::uint16_t>(kind), handler.key, handler.member, from, bytes};
    if (node_.send(to, letter, must_arrive ? kControlQueueLimit : kControlQuestionsLimit) || !must_arrive) return;
    OverlayNode::Events events;
    node_.give_up(to, "its process reads nothing: " + std::to_string(kControlQueueLimit >> 20) + " MiB of control messages wait",
                  events);
    for (auto& loss : events.losses) losses_.push_back(std::move(loss));
  }
  owner_.overlay_needs_attention(weak_from_this());
}

// ---- control thread ----

Status TcpControlOverlay::receive(const TcpControlChannel& channel, const ControlFrame& frame) {
  const auto peer = by_process_.find(channel.peer().process);
  if (channel.peer().key != key_ || peer == by_process_.end())
    return failure(Code::remote_error, "its process sent a message to be passed on, and is no member");
  if (frame.kind == ControlFrameKind::edge_over) {
    lose_edge(peer->second, "its process has ended its part in the communicator");
    return {};
  }
  OverlayNode::Events events;
  {
    const std::lock_guard lock(mutex_);
    SETO_TRY(node_.receive(peer->second, {overlay_kind(frame.kind), frame.from, frame.to, frame.bytes}, events));
  }
  apply(events);
  advance();
  return {};
}

void TcpControlOverlay::channel_ended(const TcpControlChannel& channel) {
  const auto peer = by_process_.find(channel.peer().process);
  if (peer == by_process_.end()) return;
  {
    const std::lock_guard lock(mutex_);
    const auto edge = edges_.find(peer->second);
    if (edge == edges_.end() || edge->second.get() != &channel) return;
  }
  const std::string why = channel.why();
  lose_edge(peer->second, why.empty() ? "its process has closed its connections" : why);
}

void TcpControlOverlay::lose_edge(OverlayMember peer, const std::string& why) {
  OverlayNode::Events events;
  {
    const std::lock_guard lock(mutex_);
    node_.lose(peer, why, events);
  }
  apply(events);
  advance();
}

void TcpControlOverlay::handle_attention() {
  std::vector<std::shared_ptr<TcpControlChannel>> ended;
  OverlayNode::Events events;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [peer, edge] : edges_)
      if (!edge->live()) ended.push_back(edge);
    events.losses.swap(losses_);
  }
  for (const auto& edge : ended) channel_ended(*edge);
  apply(events);
  advance();
}

void TcpControlOverlay::apply(const OverlayNode::Events& events) {
  for (const auto& [from, letter] : events.deliveries) {
    const HandlerName to{letter.key, letter.to};
    if (letter.kind == static_cast<std::uint16_t>(ControlFrameKind::ask))
      answer(from, letter);
    else if (letter.kind == static_cast<std::uint16_t>(ControlFrameKind::message))
      static_cast<void>(owner_.message_handlers().receive(to, letter.from, letter.bytes));
    else if (letter.kind == static_cast<std::uint16_t>(ControlFrameKind::no_handler))
      static_cast<void>(owner_.message_handlers().receive(to, letter.from, {}));
  }
  for (const auto& [member, why] : events.losses) lose(member, why);
}

void TcpControlOverlay::answer(OverlayMember from, const RelayedLetter& letter) {
  std::string bytes;
  const bool there = owner_.message_handlers().answer({letter.key, letter.to}, bytes);
  const ControlFrameKind kind = there ? ControlFrameKind::message : ControlFrameKind::no_handler;
  const std::lock_guard lock(mutex_);
  static_cast<void>(
      node_.send(from, {static_cast<std::uint16_t>(kind), letter.key, letter.from, letter.to, bytes}, kControlQuestionsLimit));
}

// Also calls those back that came after the loss.
void TcpControlOverlay::lose(OverlayMember number, const std::string& why) {
  Member& member = *members_[number];
  std::vector<std::uint64_t> due;
  {
    const std::lock_guard lock(mutex_);
    if (!member.dead_.load(std::memory_order_relaxed)) member.why_ = why;
    member.dead_.store(true, std::memory_order_release);
    due.swap(member.deaths_);
  }
  for (const std::uint64_t id : due) owner_.deaths().run(id, [](const std::function<void()>& callback) { callback(); });
}

// ---- the end ----

// Where a peer was never attached, the attempt has failed. All others must know that nothing leads to that peer, because they
// would pass messages on until it has left or is lost.
void TcpControlOverlay::leave() {
  if (generation_ != fork_generation()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    OverlayNode::Events events;
    for (const OverlayMember peer : peers_)
      if (edges_.count(peer) == 0) node_.lose(peer, "its process has not connected", events);
    for (auto& loss : events.losses) losses_.push_back(std::move(loss));
    node_.prepare_to_leave();
  }
  advance();
}

void TcpControlOverlay::leave_unheard() {
  {
    const std::lock_guard lock(mutex_);
    if (!leaving_ || node_.has_left()) return;
    node_.leave();
    changed_.notify_all();
  }
  advance();
}

// An attempt that has failed needs no process any more. A channel may stay open for other communicators, so its far end must hear
// that it is no edge of this overlay any more: what is sent along it would be dropped.
void TcpControlOverlay::advance() {
  {
    const std::lock_guard lock(mutex_);
    if (!leaving_) return;
    if (!node_.has_left()) {
      if (!node_.settled()) return;
      node_.leave();
      changed_.notify_all();
    }
    if (over_ || (node_.is_needed() && edges_.size() == peers_.size())) return;
    over_ = true;
    for (const auto& [peer, edge] : edges_) edge->send({ControlFrameKind::edge_over, 0, attempt_});
  }
  owner_.overlay_over(attempt_);
}

bool TcpControlOverlay::wait_until_left(Deadline until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(until.remaining_ms()),
                           [this] { return !leaving_ || node_.has_left(); });
}

}  // namespace seto
