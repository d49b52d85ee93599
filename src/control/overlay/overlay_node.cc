#include "src/control/overlay/overlay_node.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace seto {
namespace {

constexpr std::uint8_t kWantsAnswer = 1;
constexpr std::size_t kLongestText = 500;

Status nonsense(const char* what) { return failure(Code::remote_error, "its process sent a message to be passed on: %s", what); }

}  // namespace

// Little-endian, as is every machine that this library runs on.
struct OverlayNode::Head {
  std::uint64_t number = 0;  // of the letter
  std::uint64_t heard = 0;   // the sender has taken all letters up to this one
  std::uint64_t key = 0;
  std::uint32_t to = 0;
  std::uint32_t from = 0;
  std::uint16_t kind = 0;  // 0: no letter, only what the sender has heard
  std::uint8_t flags = 0;
  std::uint8_t hops = 0;  // members between the two ends
  std::uint8_t at = 0;    // of these, how many have passed it on
  std::uint8_t zero[3] = {};
  std::uint16_t path[kLongestPath] = {};
};

OverlayNode::OverlayNode(OverlayGraph graph, OverlayMember own, Output& output)
    : routes_(std::move(graph), own), output_(output), lost_(routes_.graph().members()) {
  static_assert(sizeof(Head) == kRelayHeadSize);
}

// A peer that has just begun may have missed what was told before. One that has ended before this end began is lost already.
void OverlayNode::attach(OverlayMember peer) {
  if (routes_.lost_edges().count({routes_.own(), peer}) > 0 || !attached_.insert(peer).second) return;
  for (const OverlayMember one : routes_.left()) output_.send(peer, {OverlayFrameKind::left, one, 0, {}});
  for (const auto& [teller, lost] : routes_.lost_edges())
    output_.send(peer, {OverlayFrameKind::edge_lost, teller, lost, why_[lost]});
  for (auto& [member, stream] : streams_)
    if (!stream.kept().empty()) take_path(member, stream);
}

void OverlayNode::lose(OverlayMember peer, const std::string& why, Events& events) {
  attached_.erase(peer);
  if (!routes_.edge_lost(routes_.own(), peer)) return;
  const std::string& text = why_.emplace(peer, why.substr(0, kLongestText)).first->second;
  tell_all({OverlayFrameKind::edge_lost, routes_.own(), peer, text}, peer);
  adapt(events);
}

void OverlayNode::tell_all(const OverlayFrame& frame, OverlayMember but) {
  for (const OverlayMember one : attached_)
    if (one != but) output_.send(one, frame);
}

// ---- letters of this member ----

bool OverlayNode::send(OverlayMember to, const RelayedLetter& letter, std::size_t limit) {
  if (lost_[to] || routes_.left().count(to) > 0) return true;
  RelayedStream& stream = streams_[to];
  if (stream.kept_bytes() + kRelayHeadSize + letter.bytes.size() > limit) return false;
  Head head;
  head.key = letter.key;
  head.to = letter.to;
  head.from = letter.from;
  head.kind = letter.kind;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  const RelayedStream::Kept& kept = stream.keep(std::move(bytes.append(letter.bytes)));
  if (!stream.path) stream.path = routes_.path_to(to);
  if (stream.path) transmit(to, stream, kept);
  return true;
}

void OverlayNode::transmit(OverlayMember to, RelayedStream& stream, const RelayedStream::Kept& kept) {
  Head head;
  std::memcpy(&head, kept.bytes.data(), sizeof head);
  head.number = kept.number;
  head.heard = stream.tell_heard();
  send_along(to, *stream.path, head, std::string_view(kept.bytes).substr(sizeof head));
}

void OverlayNode::transmit_head(OverlayMember to, RelayedStream& stream, bool wants_answer) {
  if (!stream.path) stream.path = routes_.path_to(to);
  if (!stream.path) return;
  Head head;
  head.heard = stream.tell_heard();
  head.flags = wants_answer ? kWantsAnswer : 0;
  send_along(to, *stream.path, head, {});
}

void OverlayNode::send_along(OverlayMember to, const OverlayPath& path, Head& head, std::string_view bytes) {
  head.hops = static_cast<std::uint8_t>(path.size());
  std::copy(path.begin(), path.end(), head.path);
  std::string whole(reinterpret_cast<const char*>(&head), sizeof head);
  whole.append(bytes);
  const OverlayMember next = path.empty() ? to : path.front();
  if (attached_.count(next) > 0) output_.send(next, {OverlayFrameKind::relayed, routes_.own(), to, whole});
}

// ---- what this member knows ----

void OverlayNode::give_up(OverlayMember member, const std::string& why, Events& events) {
  if (lost_[member]) return;
  lost_[member] = true;
  events.losses.push_back({member, why});
  streams_[member].close();
}

void OverlayNode::look_for_losses(Events& events) {
  if (std::exchange(changes_seen_, routes_.changes_of_lost()) == routes_.changes_of_lost()) return;
  const std::vector<bool> lost = routes_.lost_members();
  for (OverlayMember member = 0; member < lost.size(); ++member) {
    if (!lost[member] || lost_[member] || routes_.left().count(member) > 0) continue;
    lost_[member] = true;
    const auto why = why_.find(member);
    events.losses.push_back(
        {member, why != why_.end() ? why->second : "its process cannot be reached: all processes that lead to it are lost"});
  }
}

void OverlayNode::adapt(Events& events) {
  look_for_losses(events);
  for (auto& [member, stream] : streams_) {
    if (stream.closed()) continue;
    if (lost_[member] || routes_.left().count(member) > 0)
      stream.close();
    else if (!stream.path || !routes_.usable(*stream.path, member))
      take_path(member, stream);
  }
}

// All that is not acknowledged is sent again: it may be lost with the old path.
void OverlayNode::take_path(OverlayMember to, RelayedStream& stream) {
  stream.path = routes_.path_to(to);
  if (!stream.path) return;
  for (const RelayedStream::Kept& kept : stream.kept()) transmit(to, stream, kept);
  const bool wants_answer = leaving_ && !stream.kept().empty();
  if (wants_answer || stream.heard() > 0) transmit_head(to, stream, wants_answer);
}

// ---- frames of peers ----

// A peer answers for what it checks before it passes something on, and for what it says itself. What two others got wrong ends
// their message alone.
Status OverlayNode::receive(OverlayMember peer, const OverlayFrame& frame, Events& events) {
  const OverlayMember members = routes_.graph().members();
  if (!routes_.graph().adjacent(peer, routes_.own())) return nonsense("over an edge that is none");
  if (frame.from >= members || frame.to >= members) return nonsense("of or to no member");
  if (routes_.lost_edges().count({routes_.own(), peer}) > 0) return {};
  switch (frame.kind) {
    case OverlayFrameKind::relayed:
      return receive_relayed(peer, frame, events);
    case OverlayFrameKind::edge_lost:
      if (!routes_.graph().adjacent(frame.from, frame.to)) return nonsense("the loss of an edge that is none");
      if (!routes_.edge_lost(frame.from, frame.to)) return {};
      why_.emplace(frame.to, frame.bytes.substr(0, kLongestText));
      break;
    case OverlayFrameKind::left:
      if (frame.from == routes_.own()) return {};  // known, or a lie of any member
      if (!routes_.member_left(frame.from)) return {};
      break;
  }
  tell_all(frame, peer);
  adapt(events);
  return {};
}

Status OverlayNode::receive_relayed(OverlayMember peer, const OverlayFrame& frame, Events& events) {
  Head head;
  if (frame.bytes.size() < sizeof head) return nonsense("without a head");
  std::memcpy(&head, frame.bytes.data(), sizeof head);
  const OverlayMember own = routes_.own();
  if (head.hops > kLongestPath || head.at > head.hops) return nonsense("with a path that is none");
  const OverlayMember before = head.at == 0 ? frame.from : head.path[head.at - 1];
  const OverlayMember here = head.at == head.hops ? frame.to : head.path[head.at];
  if (before != peer || here != own) return nonsense("over a path of others");
  if (frame.from == own) return head.at == 1 ? nonsense("of this process") : Status();
  return here == frame.to && head.at == head.hops ? receive_letter(peer, frame, head, events) : pass_on(peer, frame, head);
}

// A member that does not pass a message on has told why, or tells it now, and the sender will hear that.
Status OverlayNode::pass_on(OverlayMember peer, const OverlayFrame& frame, Head& head) {
  ++head.at;
  const OverlayMember next = head.at == head.hops ? frame.to : head.path[head.at];
  if (next >= routes_.graph().members()) return frame.from == peer ? nonsense("to no member") : Status();
  if (!routes_.usable(routes_.own(), next) || attached_.count(next) == 0) return {};
  std::string whole(reinterpret_cast<const char*>(&head), sizeof head);
  whole.append(frame.bytes.substr(sizeof head));
  output_.send(next, {OverlayFrameKind::relayed, frame.from, frame.to, whole});
  return {};
}

Status OverlayNode::receive_letter(OverlayMember peer, const OverlayFrame& frame, const Head& head, Events& events) {
  if (has_left()) return {};
  RelayedStream& stream = streams_[frame.from];
  if (!stream.acknowledged(head.heard) && !stream.closed()) {
    const Status wrong = nonsense("it heard what was never said");
    if (frame.from == peer) return wrong;
    give_up(frame.from, std::string(wrong.text()), events);
    return {};
  }
  if (head.kind != 0 && stream.take(head.number, frame.bytes.size()))
    events.deliveries.push_back({frame.from, {head.kind, head.key, head.to, head.from, frame.bytes.substr(sizeof head)}});
  if (lost_[frame.from] || routes_.left().count(frame.from) > 0) return {};
  if (stream.owes_acknowledgement() || (head.flags & kWantsAnswer) != 0) transmit_head(frame.from, stream, false);
  return {};
}

// ---- the end ----

void OverlayNode::prepare_to_leave() {
  leaving_ = true;
  for (auto& [member, stream] : streams_)
    if (!stream.kept().empty()) transmit_head(member, stream, true);
}

bool OverlayNode::settled() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& one) { return one.second.kept().empty() || !one.second.path; });
}

void OverlayNode::leave() {
  routes_.member_left(routes_.own());
  tell_all({OverlayFrameKind::left, routes_.own(), 0, {}}, routes_.own());
}

bool OverlayNode::is_needed() const {
  for (OverlayMember member = 0; member < lost_.size(); ++member)
    if (member != routes_.own() && !lost_[member] && routes_.left().count(member) == 0) return !attached_.empty();
  return false;
}

}  // namespace seto
