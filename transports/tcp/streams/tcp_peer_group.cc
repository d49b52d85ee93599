#include "transports/tcp/streams/tcp_peer_group.h"

#include <algorithm>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "transports/tcp/streams/pairs.h"
#include "transports/tcp/streams/streams.h"

namespace seto::tcp {
namespace {

constexpr std::size_t kMostRefusals = 1'024;  // that are being read
constexpr std::size_t kMostRefused = 65'536;
// Credit is returned in so many parts of a window: over a far link in small ones, so that the sender does not run dry meanwhile.
constexpr std::uint64_t kNearParts = 4;
constexpr std::uint64_t kFarParts = 8;
// A member tells another one of so many later operations at most, each as it ends. An honest one is told sooner what it asked
// for.
constexpr std::uint64_t kMostTold = 1'024;
// How long a header that disagrees waits for the note that explains it.
constexpr std::uint64_t kNoteNs = 2'000'000'000;

}  // namespace

TcpPeerGroup::TcpPeerGroup(PeerGroupSetup setup)
    : setup_(std::move(setup)), status_({setup_.own, members(), setup_.exchange, this}), peers_(setup_.links.size()) {}

Result<std::unique_ptr<TcpPeerGroup>> TcpPeerGroup::create(PeerGroupSetup setup) {
  std::unique_ptr<TcpPeerGroup> peer_group(new TcpPeerGroup(std::move(setup)));
  TcpPeerGroup& self = *peer_group;
  const std::lock_guard lock(self.setup_.domain->lock());
  for (std::uint32_t member = 0; member < self.members(); ++member) {
    if (self.link(member) == nullptr) continue;
    self.peers_[member].pair = std::make_unique<InPair>(self.link(member)->share());
    self.link(member)->enter(self.setup_.number, self, member, self.setup_.own);
  }
  self.setup_.domain->note_output();
  return peer_group;
}

TcpPeerGroup::~TcpPeerGroup() {
  const std::lock_guard lock(setup_.domain->lock());
  for (const auto& each : setup_.links)
    if (each != nullptr) each->leave(setup_.number);
  setup_.domain->note_output();  // rails may have ended
  for (std::uint32_t member = 0; member < members(); ++member)
    if (link(member) != nullptr) discharge(member, peers_[member].charged);
  for (const Peer& peer : peers_) setup_.domain->windows().give_back(peer.reserved);
  peers_.clear();  // returns its buffers
}

Status TcpPeerGroup::check_address(const StreamAddress& address) const {
  if (has_stream(address.port, address.group)) return {};
  return seto::failure(Code::invalid_usage, "port %u or group %u is beyond the %u ports and %u groups of this communicator",
                       address.port, address.group, setup_.ports, kMostGroups);
}

Result<std::unique_ptr<SendStream>> TcpPeerGroup::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                            const StreamGeometry& geometry) {
  const auto unreached = [this](std::uint32_t member) { return member >= members() || link(member) == nullptr; };
  if (receivers.empty() || (address.group == 0 && receivers.size() > 1) ||
      std::any_of(receivers.begin(), receivers.end(), unreached))
    return seto::failure(
        Code::invalid_usage,
        "a stream of group %u cannot have these %zu receivers: group 0 has one, and all must be reached over TCP", address.group,
        receivers.size());
  SETO_TRY(check_address(address));
  SETO_TRY(check(geometry));
  return std::unique_ptr<SendStream>(new TcpSender(*this, address, receivers, geometry));
}

Result<std::unique_ptr<ReceiveStream>> TcpPeerGroup::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  if (address.sender >= members() || link(address.sender) == nullptr)
    return seto::failure(Code::invalid_usage, "%s %u is not reached over TCP", setup_.called, address.sender);
  SETO_TRY(check_address(address));
  SETO_TRY(check(geometry));
  return std::unique_ptr<ReceiveStream>(new TcpReceiver(*this, address, geometry));
}

Result<std::unique_ptr<PairSender>> TcpPeerGroup::open_pair_send(std::uint32_t receiver) {
  if (receiver >= members() || link(receiver) == nullptr)
    return seto::failure(Code::invalid_usage, "messages to %s %u: it is not connected over TCP", setup_.called, receiver);
  return std::unique_ptr<PairSender>(new TcpPairSender(*this, receiver));
}

Result<std::unique_ptr<PairReceiver>> TcpPeerGroup::open_pair_receive(std::uint32_t sender) {
  if (sender >= members() || link(sender) == nullptr)
    return seto::failure(Code::invalid_usage, "messages from %s %u: it is not connected over TCP", setup_.called, sender);
  return std::unique_ptr<PairReceiver>(new TcpPairReceiver(*this, sender));
}

// ---- operations ----

void TcpPeerGroup::complete(std::uint64_t operation) {
  for (std::uint64_t each = done_ + 1; each <= operation; ++each) look_for_unread(each);
  done_ = operation;
  status_.complete(operation);
  for (std::uint32_t member = 0; member < members(); ++member)
    if (peers_[member].asked_from != 0 && peers_[member].asked_from <= done_) tell_progress(member);
}

void TcpPeerGroup::look_for_unread(std::uint64_t operation) {
  const bool disregarded = disregarded_[operation % kMostOperations] == operation;
  for (std::uint32_t member = 0; member < members(); ++member) {
    const std::uint32_t unread = std::exchange(peers_[member].unread[operation % kMostOperations], 0);
    if (unread == 0) continue;
    forget(member, operation);
    if (disregarded) continue;
    disagree(member, operation,
             seto::failure(Code::remote_error, "%s %u sent data in operation %llu that no call here receives", setup_.called,
                           member, static_cast<unsigned long long>(operation)));
  }
}

// Returns the buffers of unread messages now, not when their slot is used again.
void TcpPeerGroup::forget(std::uint32_t member, std::uint64_t operation) {
  const std::lock_guard lock(setup_.domain->lock());
  for (const auto& [key, stream] : peers_[member].streams) stream->forget_before(operation);
}

void TcpPeerGroup::asked_for_progress(Peer& peer, std::uint32_t member, std::uint64_t operation) {
  if (operation <= done_) return link(member)->queue_urgent(frame_of(FrameKind::progress));
  peer.asked_from = peer.asked_from == 0 ? operation : std::min(peer.asked_from, operation);
  peer.asked_to = std::max(peer.asked_to, std::min(operation, done_ + kMostTold));
}

void TcpPeerGroup::tell_progress(std::uint32_t member) {
  const std::lock_guard lock(setup_.domain->lock());
  Peer& peer = peers_[member];
  peer.asked_from = peer.asked_to > done_ ? done_ + 1 : 0;
  link(member)->queue_urgent(frame_of(FrameKind::progress));
  push_out(*link(member));
}

// One frame asks, and its answer needs a thread of the peer that drives calls. The status record needs none, but this member asks
// for it more and more rarely.
void TcpPeerGroup::await_progress(std::uint32_t member, std::uint64_t operation, std::uint64_t& asked) {
  status_.ask(member);
  if (operation <= asked) return;
  asked = operation;
  Frame frame = frame_of(FrameKind::progress);
  frame.flags = kTellProgress;
  frame.mark = mark_of(operation, 0);
  const std::lock_guard lock(setup_.domain->lock());
  link(member)->queue({frame, nullptr, nullptr, nullptr});
  push_out(*link(member));
}

std::uint64_t TcpPeerGroup::done_by(std::uint32_t member) const {
  return std::max(peers_[member].done, status_.known_completed(member));
}

// ---- departure ----

// The holder of the token writes the frames. A peer to which this context has sent nothing expects none: see note_departure().
void TcpPeerGroup::send_departure() {
  const std::lock_guard lock(setup_.domain->lock());
  Frame frame;
  frame.set_kind(FrameKind::left);
  frame.peer_group = setup_.number;
  frame.done = status_.known_completed(setup_.own);
  for (const auto& each : setup_.links)
    if (each != nullptr && each->needed()) each->queue({frame, nullptr, nullptr, nullptr});
  setup_.domain->note_output();
}

// The status record of a member arrives in order with the word that it uses the link. So whether any data can precede its
// departure is known when the record arrives. Later it may use the link for another communicator.
void TcpPeerGroup::note_departure(std::uint32_t member) {
  if (member >= members() || link(member) == nullptr || status_.fate_of(member).reason == 0) return;
  const std::lock_guard lock(setup_.domain->lock());
  Peer& peer = peers_[member];
  if (std::exchange(peer.departure_noted, true)) return;
  peer.left_silent = !link(member)->needed_by_peer();
}

Status TcpPeerGroup::renew(std::uint32_t member, std::string_view record) {
  Status renewed = status_.renew(member, record);
  note_departure(member);
  return renewed;
}

void TcpPeerGroup::lose(std::uint32_t member) {
  status_.lose(member);
  note_departure(member);
}

bool TcpPeerGroup::all_arrived(std::uint32_t member) const {
  const Link* const its = link(member);
  if (its == nullptr) return true;
  const std::lock_guard lock(setup_.domain->lock());
  const Peer& peer = peers_[member];
  if (its->broken() || peer.left_silent) return true;
  return its->open() || its->needed_by_peer() ? peer.left != 0 && its->heard() >= peer.left : true;
}

// ---- failure ----

void TcpPeerGroup::disagree(std::uint32_t member, std::uint64_t operation, Status reason) {
  if (disagreement_.reason.ok()) disagreement_ = {member, operation, monotonic_ns(), false, std::move(reason)};
}

void TcpPeerGroup::miss(std::uint32_t member, std::uint64_t operation) {
  if (done_by(member) < operation) return;
  fail(seto::failure(Code::remote_error, "%s %u had ended operation %llu, but not all of its data has arrived: %s", setup_.called,
                     member, static_cast<unsigned long long>(operation), std::string(link(member)->why().text()).c_str()));
}

// The caller has compared the notes just before. If the note was available at the previous call already, the comparison found no
// reason in it, and the disagreement itself is reported.
Status TcpPeerGroup::failure() const {
  Disagreement& open = disagreement_;
  if (!failure_.ok() || open.reason.ok()) return failure_;
  Note note;
  const bool late = monotonic_ns() - open.since_ns > kNoteNs;
  if (open.told || late) return open.reason;
  open.told = status_.note_of(open.member, open.operation, note);
  return {};
}

// ---- frames ----

Frame TcpPeerGroup::frame_of(FrameKind kind) const {
  Frame frame;
  frame.set_kind(kind);
  frame.peer_group = setup_.number;
  frame.done = status_.known_completed(setup_.own);  // not done_: a thread that opens a stream does not hold the token
  return frame;
}

void TcpPeerGroup::push_out(Link& link) {
  (void)link.flush();
  if (link.unsent()) setup_.domain->note_output();
}

// In steps, so that not every small message costs a frame.
void TcpPeerGroup::give_pair_credit(std::uint32_t member) {
  Peer& peer = peers_[member];
  const std::uint64_t parts = link(member)->far() ? kFarParts : kNearParts;
  if (peer.pair->released() < peer.pair_told + peer.pair->window() / parts) return;
  peer.pair_told = peer.pair->released();
  Frame frame = frame_of(FrameKind::pair_taken);
  frame.mark = peer.pair_told;
  link(member)->queue_urgent(frame);
}

InStream& TcpPeerGroup::stream_of(std::uint32_t member, std::uint32_t key) {
  auto& stream = peers_[member].streams[key];
  if (stream == nullptr)
    stream = std::make_unique<InStream>(link(member)->share(), link(member)->far() ? kMostAheadFar : kMostAhead);
  return *stream;
}

std::uint64_t TcpPeerGroup::reserve(std::uint32_t member, std::uint64_t wanted) {
  WindowBudget& windows = setup_.domain->windows();
  const std::uint64_t granted = windows.reserve(wanted, peers_[member].reserved);
  peers_[member].reserved += granted;
  if (granted < wanted && windows.tell_once())
    SETO_LOG(info,
             "the memory for data from far ranks is spent (%llu MiB for each of them, SETO_LONG_LINK_MEMORY is %llu MiB): long "
             "links may be slower than they could be (logged once)",
             static_cast<unsigned long long>(windows.share() >> 20), static_cast<unsigned long long>(windows.limit() >> 20));
  return granted;
}

InStream& TcpPeerGroup::open_stream(const StreamAddress& address, const StreamGeometry& geometry) {
  const std::lock_guard lock(setup_.domain->lock());
  InStream& stream = stream_of(address.sender, key_of(address.port, address.group));
  const std::uint64_t window = std::max(geometry.window, link(address.sender)->pipe());
  stream.expect(geometry.slices * std::uint64_t{geometry.slot_size});
  widen_stream(stream, address, std::min(window, geometry.slices * std::uint64_t{geometry.slot_size}));
  return stream;
}

// Two operations of a stream may be under way at once, and each may fill a window.
void TcpPeerGroup::widen_stream(InStream& stream, const StreamAddress& address, std::uint64_t wanted) {
  if (!link(address.sender)->far() || wanted <= stream.window()) return;
  const std::uint64_t more = reserve(address.sender, kWindow * (wanted - stream.window())) / kWindow;
  if (more == 0) return;
  stream.widen(stream.window() + more);
  Frame frame = frame_of(FrameKind::window);
  frame.mark = stream.window();
  frame.port = address.port;
  frame.group = address.group;
  link(address.sender)->queue_urgent(frame);
  setup_.domain->note_output();
}

void TcpPeerGroup::widen_pair(std::uint32_t member) {
  InPair& pair = *peers_[member].pair;
  const std::uint64_t wanted = link(member)->pipe();
  if (!link(member)->far() || wanted <= pair.window()) return;
  const std::uint64_t more = reserve(member, wanted - pair.window());
  if (more == 0) return;
  pair.widen(pair.window() + more);
  Frame frame = frame_of(FrameKind::window);
  frame.flags = kOfMessages;
  frame.mark = pair.window();
  link(member)->queue_urgent(frame);
  setup_.domain->note_output();
}

void TcpPeerGroup::pipe_grew(std::uint32_t member) {
  for (const auto& [key, stream] : peers_[member].streams)
    widen_stream(*stream, address_in(member, key), std::min(link(member)->pipe(), stream->longest()));
  if (peers_[member].pair->window() > kPairCredit) widen_pair(member);
}

Status TcpPeerGroup::hear_window(std::uint32_t member, const Frame& frame) {
  if ((frame.flags & kOfMessages) != 0) {
    peers_[member].pair_window = std::max(peers_[member].pair_window, frame.mark);
    return {};
  }
  if (!has_stream(frame.port, frame.group)) return garbage("a window of a stream that no plan has");
  SETO_ASSIGN(StreamCredit* const credit, credit_of(member, key_of(frame.port, frame.group)));
  credit->window = std::max(credit->window, frame.mark);
  return {};
}

Status TcpPeerGroup::charge(std::uint32_t member, std::size_t bytes) {
  ReceiveShare& share = link(member)->share();
  if (!share.charge(bytes)) return share.refusal(bytes);
  peers_[member].charged += bytes;
  return {};
}

void TcpPeerGroup::discharge(std::uint32_t member, std::size_t bytes) {
  link(member)->share().discharge(bytes);
  peers_[member].charged -= bytes;
}

Result<TcpPeerGroup::StreamCredit*> TcpPeerGroup::credit_of(std::uint32_t member, std::uint32_t key) {
  auto& credit = peers_[member].credit;
  if (const auto found = credit.find(key); found != credit.end()) return &found->second;
  SETO_TRY(charge(member, kCreditEntry));
  return &credit[key];
}

Result<std::byte*> TcpPeerGroup::place(std::uint32_t member, const Frame& frame) {
  Peer& peer = peers_[member];
  if (frame.kind() == FrameKind::data) {
    if (!has_stream(frame.port, frame.group)) return garbage("a stream that no plan has");
    const std::uint64_t operation = operation_of(frame.mark);
    if (operation <= done_ && operation > forgotten_ && disregarded_[operation % kMostOperations] != operation)
      disagree(member, operation,
               seto::failure(Code::remote_error, "%s %u sent data in operation %llu, which had already ended here", setup_.called,
                             member, static_cast<unsigned long long>(operation)));
    if (operation <= done_) return static_cast<std::byte*>(nullptr);  // makes no stream: none may be there any more
    SETO_ASSIGN(const InStream::Placed placed, stream_of(member, key_of(frame.port, frame.group)).place(frame, done_));
    if (placed.first) ++peer.unread[operation % kMostOperations];
    return placed.at;
  }
  if (frame.kind() == FrameKind::pair) return peer.pair->place(frame);
  if (frame.length > 0 && frame.kind() != FrameKind::pair_refused) return garbage("a payload in a frame that has none");
  if (frame.kind() != FrameKind::pair_refused) return static_cast<std::byte*>(nullptr);
  if (frame.length != kMessageHeaderSize) return garbage("a message header of unexpected size");
  if (peer.refusals.size() >= kMostRefusals || peer.pair_refused.size() >= kMostRefused || peer.refusals.count(frame.mark) > 0)
    return garbage("more refusals than messages");
  SETO_TRY(charge(member, kRefusalEntry));
  return peer.refusals[frame.mark].data();
}

void TcpPeerGroup::unplace(std::uint32_t member, const Frame& frame, std::byte* at) {
  Peer& peer = peers_[member];
  if (frame.kind() == FrameKind::data) return stream_of(member, key_of(frame.port, frame.group)).unplace(frame, at);
  if (frame.kind() == FrameKind::pair) return peer.pair->unplace(frame, at);
  if (frame.kind() == FrameKind::pair_refused && peer.refusals.erase(frame.mark) > 0) discharge(member, kRefusalEntry);
}

Status TcpPeerGroup::arrived(std::uint32_t member, const Frame& frame, std::byte* at) {
  Peer& peer = peers_[member];
  peer.done = std::max(peer.done, frame.done);
  switch (frame.kind()) {
    case FrameKind::data:
      if (frame.flags & kTellProgress) asked_for_progress(peer, member, operation_of(frame.mark));
      if (at != nullptr) stream_of(member, key_of(frame.port, frame.group)).arrived(frame, at);
      return {};
    case FrameKind::credit: {
      if (!has_stream(frame.port, frame.group)) return garbage("credit for a stream that no plan has");
      if (frame.offset > kMostAheadFar) return garbage("credit for more slices than a stream may have in flight");
      SETO_ASSIGN(StreamCredit* const stream, credit_of(member, key_of(frame.port, frame.group)));
      Credit& credit = stream->operations[operation_of(frame.mark) % kMostOperations];
      if (frame.mark > credit.taken) credit = {frame.mark, frame.mark + frame.offset};
      return {};
    }
    case FrameKind::progress:
      if (frame.flags & kTellProgress) asked_for_progress(peer, member, operation_of(frame.mark));
      return {};
    case FrameKind::pair:
      peer.pair->arrived(frame, at);
      give_pair_credit(member);  // for one that was dropped
      return {};
    case FrameKind::pair_taken:
      peer.pair_taken = std::max(peer.pair_taken, frame.mark);
      peer.pair_opened = std::max(peer.pair_opened, frame.position());
      return {};
    case FrameKind::pair_refused:
      if (at == nullptr || peer.refusals.count(frame.mark) == 0) return {};
      if (!peer.pair_refused.insert_or_assign(frame.mark, header_in(at)).second) discharge(member, kRefusalEntry);
      peer.refusals.erase(frame.mark);
      return {};
    case FrameKind::window:
      return hear_window(member, frame);
    case FrameKind::left:
      peer.left = frame.sequence;
      return {};
    default:
      return {};
  }
}

}  // namespace seto::tcp
