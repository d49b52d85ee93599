#include "transports/tcp/tcp_peer_group.h"

#include <algorithm>
#include <utility>

#include "src/base/clock.h"
#include "transports/tcp/pairs.h"
#include "transports/tcp/streams.h"

namespace seto::tcp {
namespace {

// Streams that a member may announce before anybody here has opened them.
constexpr std::size_t kMostStreams = 65'536;
constexpr std::size_t kMostRefusals = 1'024;
// How long a header that disagrees waits for the note that says why.
constexpr std::uint64_t kNoteNs = 2'000'000'000;

}  // namespace

TcpCircle::TcpCircle(CircleSetup setup) : setup_(std::move(setup)), peers_(setup_.links.size()) {
  for (std::size_t i = 0; i < setup_.links.size(); ++i) copies_.push_back(std::make_unique<Bulletin>());
}

Result<std::unique_ptr<TcpCircle>> TcpCircle::create(CircleSetup setup) {
  std::unique_ptr<TcpCircle> circle(new TcpCircle(std::move(setup)));
  TcpCircle& self = *circle;
  const std::lock_guard lock(self.setup_.domain->lock());
  for (std::uint32_t member = 0; member < self.members(); ++member) {
    if (self.link(member) == nullptr) continue;
    self.peers_[member].pair = std::make_unique<InPair>(self.setup_.domain->landing());
    self.link(member)->enter(self.setup_.number, self, member, self.setup_.own);
  }
  self.setup_.domain->note_output();
  return circle;
}

TcpCircle::~TcpCircle() {
  const std::lock_guard lock(setup_.domain->lock());
  for (const auto& each : setup_.links)
    if (each != nullptr) each->leave(setup_.number);
  peers_.clear();  // gives its memory back
}

Result<std::unique_ptr<SendStream>> TcpCircle::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                         const StreamGeometry& geometry) {
  const auto unreached = [this](std::uint32_t member) { return member >= members() || link(member) == nullptr; };
  if (receivers.empty() || (address.group == 0 && receivers.size() > 1) ||
      std::any_of(receivers.begin(), receivers.end(), unreached))
    return seto::failure(Code::invalid_usage, "a stream of group %u cannot have %zu receivers, or not those, over TCP",
                         address.group, receivers.size());
  SETO_TRY(check(geometry));
  return std::unique_ptr<SendStream>(new TcpSender(*this, address, receivers, geometry));
}

Result<std::unique_ptr<ReceiveStream>> TcpCircle::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  if (address.sender >= members() || link(address.sender) == nullptr)
    return seto::failure(Code::invalid_usage, "%s %u is not reached over TCP", setup_.called, address.sender);
  SETO_TRY(check(geometry));
  return std::unique_ptr<ReceiveStream>(new TcpReceiver(*this, address, geometry));
}

Result<std::unique_ptr<PairSender>> TcpCircle::open_pair_send(std::uint32_t receiver) {
  if (receiver >= members() || link(receiver) == nullptr)
    return seto::failure(Code::invalid_usage, "messages to %s %u: it is not reached over TCP", setup_.called, receiver);
  return std::unique_ptr<PairSender>(new TcpPairSender(*this, receiver));
}

Result<std::unique_ptr<PairReceiver>> TcpCircle::open_pair_receive(std::uint32_t sender) {
  if (sender >= members() || link(sender) == nullptr)
    return seto::failure(Code::invalid_usage, "messages of %s %u: it is not reached over TCP", setup_.called, sender);
  return std::unique_ptr<PairReceiver>(new TcpPairReceiver(*this, sender));
}

// ---- what members say of themselves ----

void TcpCircle::begin(const Note& note) { bulletin_.write(note); }

void TcpCircle::complete(std::uint64_t operation) {
  for (std::uint64_t each = done_ + 1; each <= operation; ++each) look_for_unread(each);
  done_ = operation;
  bulletin_.complete(operation);
  for (std::uint32_t member = 0; member < members(); ++member)
    if (peers_[member].asked_from != 0 && peers_[member].asked_from <= done_) tell_progress(member);
}

void TcpCircle::look_for_unread(std::uint64_t operation) {
  const bool disregarded = disregarded_[operation % kMostOperations] == operation;
  for (std::uint32_t member = 0; member < members(); ++member) {
    const std::uint32_t unread = std::exchange(peers_[member].unread[operation % kMostOperations], 0);
    if (unread == 0) continue;
    forget(member, operation);
    if (disregarded) continue;
    disagree(member, operation,
             seto::failure(Code::remote_error, "%s %u sent something in operation %llu where nothing was due", setup_.called,
                           member, static_cast<unsigned long long>(operation)));
  }
}

// Their memory goes back now, not when their place is used again.
void TcpCircle::forget(std::uint32_t member, std::uint64_t operation) {
  const std::lock_guard lock(setup_.domain->lock());
  for (const auto& [key, stream] : peers_[member].streams) stream->forget_before(operation);
}

void TcpCircle::asked_for_progress(Peer& peer, std::uint32_t member, std::uint64_t operation) {
  if (operation <= done_) return link(member)->queue_urgent(frame_of(FrameKind::progress));
  peer.asked_from = peer.asked_from == 0 ? operation : std::min(peer.asked_from, operation);
  peer.asked_to = std::max(peer.asked_to, operation);
}

void TcpCircle::tell_progress(std::uint32_t member) {
  const std::lock_guard lock(setup_.domain->lock());
  Peer& peer = peers_[member];
  peer.asked_from = peer.asked_to > done_ ? done_ + 1 : 0;
  link(member)->queue_urgent(frame_of(FrameKind::progress));
  push_out(*link(member));
}

bool TcpCircle::note_of(std::uint32_t member, std::uint64_t operation, Note& note) const {
  if (member == setup_.own) return bulletin_.note_of(operation, note);
  if (copies_[member]->note_of(operation, note)) return true;
  setup_.herald->ask(member);
  return false;
}

std::uint64_t TcpCircle::done_by(std::uint32_t member) const {
  return std::max(peers_[member].done, copies_[member]->completed());
}

// A copy may be old: who looks again finds a newer one.
std::uint64_t TcpCircle::completed_by(std::uint32_t member) const {
  if (member == setup_.own) return bulletin_.completed();
  setup_.herald->ask(member);
  return copies_[member]->completed();
}

// In words beside the streams, and behind everything on them. Whoever holds the token sends it.
void TcpCircle::leave(Fate fate) {
  const bool first = bulletin_.fate().reason == 0;
  bulletin_.leave(fate);
  setup_.herald->announce();
  if (!first) return;
  const std::lock_guard lock(setup_.domain->lock());
  Frame frame;
  frame.set_kind(FrameKind::left);
  frame.circle = setup_.number;
  frame.done = bulletin_.completed();
  for (const auto& each : setup_.links)
    if (each != nullptr) each->queue({frame, nullptr, nullptr, nullptr});
  setup_.domain->note_output();
}

bool TcpCircle::silent(std::uint32_t member) const {
  if (member == setup_.own || link(member) == nullptr) return true;
  const std::lock_guard lock(setup_.domain->lock());
  const std::uint64_t left = peers_[member].left;
  return link(member)->broken() || (left != 0 && link(member)->heard() >= left);
}

Fate TcpCircle::fate_of(std::uint32_t member) const { return member == setup_.own ? bulletin_.fate() : copies_[member]->fate(); }

void TcpCircle::disagree(std::uint32_t member, std::uint64_t operation, Status reason) {
  if (disagreement_.reason.ok()) disagreement_ = {member, operation, monotonic_ns(), false, std::move(reason)};
}

void TcpCircle::miss(std::uint32_t member, std::uint64_t operation) {
  if (done_by(member) < operation) return;
  fail(seto::failure(Code::remote_error, "%s %u had ended operation %llu, and not all that it sent has come: %s", setup_.called,
                     member, static_cast<unsigned long long>(operation), std::string(link(member)->why().text()).c_str()));
}

// Who looks for failures has compared the notes just before: the second time that it looks with the note here, that did not tell.
Status TcpCircle::failure() const {
  Disagreement& open = disagreement_;
  if (!failure_.ok() || open.reason.ok()) return failure_;
  Note note;
  const bool late = monotonic_ns() - open.since_ns > kNoteNs;
  if (open.told || late) return open.reason;
  open.told = note_of(open.member, open.operation, note);
  return {};
}

std::string TcpCircle::explanation_of(std::uint32_t member) const {
  return member == setup_.own ? bulletin_.words() : copies_[member]->words();
}

Status TcpCircle::renew(std::uint32_t member, std::string_view bulletin) {
  if (member >= members() || member == setup_.own) return garbage("a bulletin of no member");
  return copies_[member]->renew(bulletin);
}

void TcpCircle::lose(std::uint32_t member) {
  if (member < members() && member != setup_.own)
    copies_[member]->leave({static_cast<std::uint32_t>(Code::invalid_usage), member});
}

// ---- frames ----

Frame TcpCircle::frame_of(FrameKind kind) const {
  Frame frame;
  frame.set_kind(kind);
  frame.circle = setup_.number;
  frame.done = done_;
  return frame;
}

void TcpCircle::push_out(Link& link) {
  (void)link.flush();
  if (link.unsent()) setup_.domain->note_output();
}

// In steps, so that small messages cost no reply each.
void TcpCircle::give_pair_credit(std::uint32_t member) {
  Peer& peer = peers_[member];
  if (peer.pair->released() < peer.pair_told + kPairCredit / 4) return;
  peer.pair_told = peer.pair->released();
  Frame frame = frame_of(FrameKind::pair_taken);
  frame.mark = peer.pair_told;
  link(member)->queue_urgent(frame);
}

InStream& TcpCircle::stream_of(std::uint32_t member, std::uint32_t key) {
  auto& stream = peers_[member].streams[key];
  if (stream == nullptr) stream = std::make_unique<InStream>(setup_.domain->landing());
  return *stream;
}

Result<std::byte*> TcpCircle::place(std::uint32_t member, const Frame& frame) {
  Peer& peer = peers_[member];
  if (frame.kind() == FrameKind::data) {
    if (peer.streams.size() >= kMostStreams) return garbage("more streams than there can be");
    const std::uint64_t operation = operation_of(frame.mark);
    if (operation <= done_ && disregarded_[operation % kMostOperations] != operation)
      disagree(member, operation,
               seto::failure(Code::remote_error, "%s %u sent something in operation %llu, which had ended here", setup_.called,
                             member, static_cast<unsigned long long>(operation)));
    if (operation > done_ && frame.offset == 0) ++peer.unread[operation % kMostOperations];
    return stream_of(member, key_of(frame.port, frame.group)).place(frame, done_);
  }
  if (frame.kind() == FrameKind::pair) return peer.pair->place(frame);
  if (frame.length > 0 && frame.kind() != FrameKind::pair_refused) return garbage("bytes where there are none");
  if (frame.kind() != FrameKind::pair_refused) return static_cast<std::byte*>(nullptr);
  if (frame.length != kLetterSize) return garbage("a letter of another size");
  if (peer.refusals.size() >= kMostRefusals || peer.pair_refused.size() >= kMostStreams || peer.refusals.count(frame.mark) > 0)
    return garbage("more refusals than messages");
  return peer.refusals[frame.mark].data();
}

Status TcpCircle::arrived(std::uint32_t member, const Frame& frame, std::byte* at) {
  Peer& peer = peers_[member];
  peer.done = std::max(peer.done, frame.done);
  switch (frame.kind()) {
    case FrameKind::data:
      if (frame.flags & kTellProgress) asked_for_progress(peer, member, operation_of(frame.mark));
      if (at != nullptr) stream_of(member, key_of(frame.port, frame.group)).arrived(frame, at);
      return {};
    case FrameKind::credit: {
      if (peer.taken.size() >= kMostStreams) return garbage("credit for more streams than there can be");
      Mark& taken = peer.taken[key_of(frame.port, frame.group)][operation_of(frame.mark) % kMostOperations];
      taken = std::max(taken, frame.mark);
      return {};
    }
    case FrameKind::pair:
      if (at != nullptr)
        peer.pair->arrived(frame, at);
      else
        give_pair_credit(member);
      return {};
    case FrameKind::pair_taken:
      peer.pair_taken = std::max(peer.pair_taken, frame.mark);
      peer.pair_opened = std::max(peer.pair_opened, frame.position());
      return {};
    case FrameKind::pair_refused:
      if (at == nullptr || peer.refusals.count(frame.mark) == 0) return {};
      peer.pair_refused[frame.mark] = letter_in(at);
      peer.refusals.erase(frame.mark);
      return {};
    case FrameKind::left:
      peer.left = frame.sequence;
      return {};
    default:
      return {};
  }
}

}  // namespace seto::tcp
