// A link that continues: which of its sockets are whole, what is kept of the frames that they took, and what is told of those
// that came.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "transports/tcp/flow/rail_news.h"
#include "transports/tcp/link/link.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kLookAgainNs = 1'000'000;
constexpr std::uint64_t kBroughtNs = 50'000;  // about what a copy from a GPU takes
// A path that breaks so soon after it was dialed again may be one that the peer has left.
constexpr std::uint64_t kSoonNs = 60'000'000'000;

struct Words {
  resume::HeardBytes bytes;
  resume::Lender lender;
};

void say_broke(bool rail, std::size_t left, std::size_t resumed, const Status& reason) {
  const std::string text(reason.text());
  if (!rail)
    SETO_LOG(info, "a data socket broke, %zu are left, at most %zu frames are sent again: %s", left, resumed, text.c_str());
  else if (rail_news().broke(monotonic_ns()))
    SETO_LOG(info, "a rail broke (others within a minute: at debug level), %zu are left, at most %zu frames are sent again: %s",
             left, resumed, text.c_str());
  else
    SETO_LOG(debug, "a rail broke, %zu are left, at most %zu frames are sent again: %s", left, resumed, text.c_str());
}

// How many frames the path took last, of those that the peer has not acknowledged.
std::size_t frames_of(const resume::Retention<Frame>* kept, std::uint32_t path) {
  std::size_t count = 0;
  for (std::uint64_t number = kept == nullptr ? 0 : kept->oldest(); number != 0 && number <= kept->sent(); ++number)
    count += kept->keeps(number) && kept->path_of(number) == path ? 1 : 0;
  return count;
}

// A copy of a payload whose owner revoked the memory.
struct Copy {
  Copy(const std::byte* from, std::size_t size) : bytes(from, from + size) {}

  std::vector<std::byte> bytes;
  resume::Lender lender;
};

}  // namespace

Status closed_by_peer() { return failure(Code::remote_error, "its connection was closed"); }

// ---- what is kept ----

// The frame gets its number. From now on the link knows its payload, and the path asks for it before each part. Where nothing of
// it is kept but a copy, this frame may be the last that holds the memory in which it is counted.
void Link::keep(Outgoing& outgoing, const Socket& socket) {
  const std::shared_ptr<resume::Lender> owner = outgoing.lender;
  const bool is_choosable = !outgoing.is_of_gpu() && outgoing.frame.length >= BytePipe::kLongPart;
  const std::uint64_t number =
      kept_->add(outgoing.frame, {outgoing.payload, outgoing.frame.length, std::move(outgoing.lender)}, socket.index);
  outgoing.frame.sequence = kept_->header(number).sequence = number;
  if (choice_ != nullptr && rails() > 0 && is_choosable)
    choice_->sent(socket.route == 0 ? WayChoice::Way::rails : WayChoice::Way::sockets, number, outgoing.frame.length,
                  monotonic_ns());
  outgoing.payload = nullptr;
  outgoing.lender = nullptr;
  outgoing.done();
}

const std::byte* Link::payload_of(const Outgoing& outgoing) const {
  return continues() && outgoing.frame.sequence != 0 ? kept_->payload(outgoing.frame.sequence) : outgoing.payload;
}

// Memory of a GPU is given to a rail whose device reads it, and to nothing else. Null: its bytes are on their way to the host,
// where another thread may bring them at any time: so the address is asked for after that.
const std::byte* Link::payload_for(Socket& socket, const Outgoing& outgoing) {
  const std::uint64_t number = outgoing.frame.sequence;
  if (!continues() || number == 0 || !kept_->on_gpu(number)) return payload_of(outgoing);
  const std::byte* const payload = payload_of(outgoing);
  if (socket.pipe.reads(payload, outgoing.frame.length)) return payload;
  const Result<const std::byte*> brought = kept_->host_payload(number);
  if (!brought.ok()) {
    break_with(brought.status());
    return nullptr;
  }
  brings_ = brings_ || brought.value() == nullptr;
  return brought.value();
}

bool Link::recall(const Unwritten* unwritten, const resume::Lender& lender) {
  waiting_.drop_if([&](Outgoing& outgoing) {
    if (outgoing.unwritten != unwritten) return false;
    waiting_bytes_ -= sizeof(Frame) + outgoing.frame.length;
    outgoing.done();
    return true;
  });
  if (continues()) {
    if (give_back(lender)) return true;
    if (!kept_->why_not_brought().ok()) {
      break_with(kept_->why_not_brought());
      return true;
    }
    if (std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) { return !socket->pinned.empty(); })) return false;
    if (kept_->is_bringing()) return false;
    break_with(failure(Code::unavailable, "no memory for a copy of what it has not acknowledged"));
    return true;
  }
  for (const auto& socket : sockets_)
    for (std::size_t i = 0; i < socket->taken; ++i) {
      Outgoing& outgoing = socket->batch[i];
      if (outgoing.unwritten != unwritten) continue;
      take_back(outgoing, i == 0 && socket->written > 0);
    }
  return true;
}

// The sequence number is assigned already, so the frame must be sent: without payload if it is not begun, so that its message
// never becomes complete. A partly written frame continues with the current content of the memory, because the receiver expects
// its bytes.
void Link::take_back(Outgoing& outgoing, bool begun) {
  if (begun) {
    const auto copy = std::make_shared<Copy>(outgoing.payload, outgoing.frame.length);
    outgoing.payload = copy->bytes.data();
    outgoing.lender = {copy, &copy->lender};
  } else {
    Frame& frame = outgoing.frame;
    frame.set_kind(FrameKind::progress);
    frame.length = frame.offset = frame.size = 0;
    frame.flags = 0;
    outgoing.payload = nullptr;
  }
  outgoing.done();
}

// It has no number: otherwise two idle ends would acknowledge each other's acknowledgements for ever.
Outgoing Link::what_was_heard() {
  owes_heard_ = false;
  policy_.told();
  const auto words = std::make_shared<Words>();
  Outgoing heard;
  heard.frame.set_kind(FrameKind::heard);
  heard.frame.length = static_cast<std::uint32_t>(encode(arrivals_->heard(), words->bytes));
  heard.payload = words->bytes.data();
  heard.lender = {words, &words->lender};
  return heard;
}

bool Link::has_more_to_keep() const { return owes_heard_ || has_again() || (continues() && policy_.due(monotonic_ns())); }

// Without a path, or with one on offer, a thread pumps though nothing is to be sent.
bool Link::is_continuing() const {
  return kept_ != nullptr && (!kept_->all_acknowledged() || policy_.due_ns() != resume::AcknowledgementPolicy::kNever ||
                              without_path_since_ != 0 || offers_ > 0 || leaving_ > 0 || needs_pumps_for_rails());
}

bool Link::only_waits() const {
  return !far() && !has_output() && without_path_since_ == 0 && offers_ == 0 && leaving_ == 0 && !needs_pumps_for_rails();
}

void Link::tell_heard_now() {
  if (policy_.due_ns() != resume::AcknowledgementPolicy::kNever) policy_.tell_again();
}

std::uint64_t Link::next_look_ns() const {
  if (broken()) return kNever;
  const std::uint64_t now = monotonic_ns();
  std::uint64_t next = held_back() ? now + kLookAgainNs : kNever;
  if (brings_) next = now + kBroughtNs;
  if (kept_ != nullptr && needs_pumps_for_rails()) next = std::min(next, now + kLookAgainNs);
  // An acknowledgement that is due, but finds no room, waits for an event.
  if (kept_ != nullptr && policy_.due_ns() > now) next = std::min(next, policy_.due_ns());
  if (may_stand_still() && without_path_since_ == 0) next = std::min(next, std::max(now + kLookAgainNs, stall_look_ns()));
  if (without_path_since_ != 0) next = std::min(next, without_path_since_ + patience_ms_ * 1'000'000);
  return next;
}

// A path that is opened later carries frames of communicators that have left, as long as such frames are under way.
void Link::forget_left() {
  if (!continues() || !waiting_.empty() || !urgent_.empty() || (kept_ != nullptr && !kept_->all_acknowledged())) return;
  std::erase_if(entered_, [](const Entered& one) { return one.left; });
}

// Where paths are whole, what the peer's kernel has is enough: the peer may compute for long before it reads it. A rail that the
// peer may not have taken yet could be dropped there, with what it holds.
bool Link::delivered() const {
  if (broken() || (continues() && kept_ == nullptr)) return true;
  if (has_output() || (needed_ && !open())) return false;
  if (continues() && kept_->all_acknowledged()) return true;
  return std::all_of(sockets_.begin(), sockets_.end(), [](const auto& socket) {
    return socket->broken || (socket->pipe.delivered() && (socket->confirmed || socket->pipe.rail() == nullptr));
  });
}

// Later bytes of the peer are not read. Without an orderly end before it, the reset that a close then causes would look
// like a path that broke, and the peer would wait for another one.
void Link::retire() {
  for (const auto& socket : sockets_) drop_pins(*socket);
  kept_.reset();
  for (const auto& socket : sockets_) {
    if (continues() && socket->live()) socket->pipe.finish();
    socket->offered.close();
  }
  offers_ = 0;
  close_rails();
  if (dialer_ != nullptr) dialer_->give_up();
}

// ---- paths ----

void Link::set_dialer(std::shared_ptr<PathDialer> dialer) {
  dialer_ = std::move(dialer);
  continues_ = true;
}

std::size_t Link::live_paths() const {
  return static_cast<std::size_t>(
      std::count_if(sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket->live(); }));
}

// A reset says that the path is broken, and an orderly end that the peer closes the link. After a reset that a write has
// reported, a read finds an end that never came; but EPIPE means that the end had come before the reset.
void Link::socket_failed(Socket& socket, int error) {
  const Status reason = connection_failure(socket.pipe.failure_text(error));
  if (!continues()) return lose(reason);
  while (socket.live() && !broken()) {
    const Dry dry = read(socket);
    if (!dry.failure.ok()) return lose(dry.failure, &socket);
    if (dry.ended && error == EPIPE) return path_ended(socket);
    if (dry.ended || dry.error != 0 || dry.bytes == 0) return path_broke(socket, reason);
  }
}

void Link::path_broke(Socket& socket, const Status& reason) {
  socket.broken = true;
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t oldest = kept_ == nullptr ? 0 : kept_->oldest();
  if (oldest != 0 && kept_->path_of(oldest) == socket.index) progress_ns_ = now;  // another one carries it, and has its own time
  socket.short_segments = socket.stalled || (socket.opened_ns != 0 && now - socket.opened_ns < kSoonNs);
  paths_changed_ = true;
  const std::size_t resumed = frames_of(kept_.get(), socket.index);
  empty_path(socket);
  pace_sockets();
  if (rail_opener_ != nullptr && socket.pipe.rail() != nullptr)
    rail_opener_->broke(socket.index - (sockets_.size() - rails()), socket.of_attempt);
  say_broke(socket.pipe.rail() != nullptr, live_paths(), resumed, reason);
  look_for_paths(reason);
}

// An end that has dialed a path, but not taken it, closes it in order.
void Link::path_ended(Socket& socket) {
  if (!socket.confirmed) return path_broke(socket, closed_by_peer());
  socket.ended = true;
  partly_ended_ = true;
  if (continues()) empty_path(socket);
  look_for_paths(closed_by_peer());
}

// One path at its end says nothing about the input of the others.
void Link::look_for_paths(const Status& reason) {
  if (live_paths() == 0) {
    if (partly_ended_) return break_with(closed_by_peer());
    if (dialer_ == nullptr) return break_with(reason);
    if (without_path_since_ == 0) without_path_since_ = monotonic_ns();
    last_break_ = reason;
  }
  if (dialer_ != nullptr && !partly_ended_) dialer_->paths_broke();
}

void Link::empty_path(Socket& socket) {
  drop_pins(socket);
  const resume::Arrivals::Half half = arrivals_->path_broke(socket.index);
  const EnteredGroup* const peer_group = peer_group_of(socket.frame.peer_group);
  const bool is_own = is_for_link(socket.frame) || socket.frame.kind() == FrameKind::heard;
  if (half.abandoned && socket.at != nullptr && !is_own && peer_group != nullptr)
    peer_group->sink->unplace(peer_group->member, socket.frame, socket.at);
  socket.in_payload = false;
  socket.at = nullptr;
  socket.begin = socket.end = 0;
  under_way_ -= socket.taken + socket.own.size();
  socket.own.drop_if([](const Outgoing&) { return true; });
  for (std::size_t i = 0; i < socket.taken; ++i) socket.batch[i] = Outgoing{};
  socket.taken = socket.written = socket.unsent = socket.in_flight = 0;
  socket.full = socket.stalled = socket.route_stalled = false;
  if (kept_ != nullptr) kept_->path_broke(socket.index);
  policy_.tell_again();
}

bool Link::wants_path(std::size_t path) const { return path < wanted_sockets() && path_is_broken(path) && !is_offered(path); }

void Link::drop_path(std::size_t path, const Status& reason) {
  if (!broken() && continues() && sockets_[path]->live()) path_broke(*sockets_[path], reason);
}

void Link::leave_path(std::size_t path) {
  if (broken() || !continues() || !is_live(path)) return;
  sockets_[path]->left = true;
  ++leaving_;
}

// Bytes that the peer's kernel knows as delivered would be lost with a socket that still has them.
void Link::reset_left_paths() {
  leaving_ = 0;
  for (const auto& socket : sockets_) {
    for (bool more = true; more && socket->left && socket->live() && !broken();) {
      const Dry dry = read(*socket);
      if (!dry.failure.ok()) return lose(dry.failure, socket.get());
      more = dry.bytes > 0 && !dry.ended && dry.error == 0;
    }
    if (!socket->left || !socket->live() || broken()) continue;
    socket->pipe.reset();
    path_broke(*socket, failure(Code::unavailable, "this end has left its path"));
  }
}

void Link::close_path(std::size_t path) {
  const std::lock_guard lock(descriptors_mutex_);
  sockets_[path]->pipe.reset_and_close();
}

void Link::offer_path(std::size_t path, PathPipe pipe, std::uint32_t attempt) {
  Socket& socket = *sockets_[path];
  if (socket.offered.valid())
    socket.offered.reset_and_close();
  else
    ++offers_;
  pipe.reset_at_close(false);
  socket.offered = std::move(pipe);
  socket.attempt = attempt;
}

void Link::take_path(std::size_t path) {
  Socket& socket = *sockets_[path];
  {
    const std::lock_guard lock(descriptors_mutex_);
    socket.pipe = std::move(socket.offered);
  }
  --offers_;
  if (!socket.pipe.encrypted()) cipher_.store(socket.pipe.cipher(), std::memory_order_relaxed);
  encrypted_ = encrypted_ || socket.pipe.encrypted();
  socket.of_attempt = socket.attempt;
  socket.broken = socket.confirmed = socket.left = false;
  socket.opened_ns = monotonic_ns();
  socket.movement.begin({}, socket.opened_ns);
  route_moves(socket.route);
  prepare(socket);
  RouteFlow& flow = flow_of(socket);
  flow.pace = {};
  pace_sockets();
  if (flow.sampler != nullptr) flow.sampler->replace(place_on_route(path));
  for (const Entered& entered : entered_) queue_opening(socket, entered);
  widen(socket);
  policy_.tell_again();
  without_path_since_ = 0;
  paths_changed_ = true;
  note_ways();
  if (dialer_ != nullptr && routes() > 1) dialer_->paths_broke();  // others may lie on its route
  SETO_LOG(info, "a %s was opened, %zu are there", socket.pipe.rail() != nullptr ? "rail" : "data socket", live_paths());
}

}  // namespace seto::tcp
