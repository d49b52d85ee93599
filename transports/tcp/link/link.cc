#include "transports/tcp/link/link.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "src/base/check.h"
#include "src/base/clock.h"

namespace seto::tcp {
namespace {

// Limit of urgent frames queued for a peer that does not read.
constexpr std::size_t kMostUrgent = 65'536;

// Bytes that the kernel holds for one socket of a far link beyond what is on its way. Without this limit the first socket took 4
// MiB before the next one got a frame: of 8 sockets over 60 ms and 1 Gbit/s, two carried 380 of 383 MB. A near link has no limit:
// a short call ends when the kernel has its bytes, though the peer may not read yet.
constexpr unsigned kMostUnsent = 128 << 10;

// The control channel judges the peer of a far link; the kernel must not end the link before.
constexpr std::uint64_t kAfterPatienceMs = 10'000;

// Holds the proof of an `open` frame until it is sent.
struct Proof {
  explicit Proof(Secret of) : secret(std::move(of)) {}
  [[nodiscard]] const std::byte* data() const { return reinterpret_cast<const std::byte*>(secret.bytes().data()); }

  Secret secret;
  resume::Lender lender;
};

}  // namespace

Link::Link(Setup setup)
    : opener_(std::move(setup.opener)),
      needed_(!setup.sockets.empty()),
      peer_needs_(!setup.sockets.empty()),
      session_(std::move(setup.session)),
      round_trip_us_(setup.round_trip_us),
      patience_ms_(setup.patience_ms),
      pipe_(round_trip_us_ * kFarBytesPerUs),
      choice_(std::move(setup.choice)),
      share_(setup.share),
      continues_(setup.continues),
      routes_(setup.routes),
      rails_(setup.rails),
      rail_opener_(std::move(setup.rail_opener)),
      together_(setup.together),
      adapts_(setup.adapts),
      copies_(std::move(setup.copies)),
      dialer_(std::move(setup.dialer)) {
  add_sockets(std::move(setup.sockets));
}

Link::~Link() {
  for (const auto& socket : sockets_) drop_pins(*socket);
}

void Link::add_sockets(std::vector<SecureStream> sockets) {
  if (sockets.size() > 1 || (continues_ && !sockets.empty())) arrivals_ = std::make_unique<resume::Arrivals>(kMostBeyond);
  if (continues()) {
    if (copies_ == nullptr) copies_ = std::make_shared<resume::CopyMemory>(kMostCopies);
    const resume::Retention<Frame>::Limits limits{std::max(kLeastKept, kPipesKept * pipe_), kMostBeyond, kCopiedAtOnce};
    kept_ = std::make_unique<resume::Retention<Frame>>(limits, *copies_);
  }
  for (SecureStream& fd : sockets) {
    if (sockets_.empty() || !fd.encrypted()) cipher_.store(fd.cipher(), std::memory_order_relaxed);
    encrypted_ = encrypted_ || fd.encrypted();
    // Its staging stays untouched: of 63 links of a rank, zeroed staging took 0.7 MiB before the first call.
    sockets_.push_back(std::make_unique_for_overwrite<Socket>());
    sockets_.back()->pipe = std::move(fd);
    sockets_.back()->index = static_cast<std::uint32_t>(sockets_.size() - 1);
    sockets_.back()->route = rails() > 0 ? 1 : route_of_socket(sockets_.size() - 1, sockets.size(), routes());
    prepare(*sockets_.back());
  }
  add_spares();
  add_rails();
  add_flows();
  for (const auto& socket : sockets_)
    if (socket->live() && socket->route > 0) widen(*socket);
  if (site_pace_ == 0) site_pace_ = site_pace_limit();
  lasting_sockets_.store(sockets_.size(), std::memory_order_release);
  pace_sockets();
}

void Link::prepare(Socket& socket) {
  if (far() && patience_ms_ > 0) socket.pipe.outlast(patience_ms_ + kAfterPatienceMs);
  if (far()) socket.pipe.limit_unsent(kMostUnsent);
}

void Link::take_sockets(std::vector<SecureStream> sockets) {
  add_sockets(std::move(sockets));
  for (const Entered& entered : entered_) queue_openings(entered);
  if (!continues()) entered_.clear();
}

Status connection_failure(const std::string& error) {
  return failure(Code::remote_error, "its connection broke: %s", error.c_str());
}

Secret Link::proof_of(std::uint64_t peer_group, std::uint32_t member) const {
  std::string context(reinterpret_cast<const char*>(&peer_group), sizeof peer_group);
  context.append(reinterpret_cast<const char*>(&member), sizeof member);
  return session_.derive("open communicator", context);
}

int Link::descriptor(std::size_t socket) const { return sockets_[socket]->pipe.descriptor(); }

bool Link::wants_to_write(std::size_t socket) const { return sockets_[socket]->full && !broken(); }

void Link::enter(std::uint64_t peer_group, Sink& sink, std::uint32_t member, std::uint32_t own) {
  peer_groups_[peer_group] = {&sink, member};
  if (broken()) return;
  if (open()) queue_openings({peer_group, own});
  forget_left();
  if (!open() || continues()) entered_.push_back({peer_group, own});
}

void Link::queue_openings(const Entered& entered) {
  for (const auto& socket : sockets_)
    if (!continues() || socket->live()) queue_opening(*socket, entered);
}

void Link::queue_opening(Socket& socket, const Entered& entered) {
  const auto proof = std::make_shared<Proof>(proof_of(entered.peer_group, entered.own));
  Frame frame;
  frame.set_kind(FrameKind::open);
  frame.peer_group = entered.peer_group;
  frame.digest = entered.own;
  frame.length = Secret::kSize;
  socket.own.push({frame, proof->data(), {proof, &proof->lender}, nullptr});
  ++under_way_;
}

// An `open` frame belongs to the connection itself and is still read. If frames of the communicator may wait for sockets, the
// peer must learn first what they belong to.
void Link::leave(std::uint64_t peer_group) {
  remote_.forget(peer_group);
  while (const auto place = told_places_.take_of(peer_group)) end_writers(*place);
  peer_groups_.erase(peer_group);
  if (!needed_) {
    std::erase_if(entered_, [peer_group](const Entered& one) { return one.peer_group == peer_group; });
    urgent_.drop_if([peer_group](const Outgoing& one) { return one.frame.peer_group == peer_group; });
  }
  for (Entered& one : entered_) one.left = one.left || one.peer_group == peer_group;
  forget_left();
  for (const auto& socket : sockets_)
    if (socket->in_payload && socket->frame.peer_group == peer_group && socket->frame.kind() != FrameKind::open)
      socket->at = nullptr;
}

EnteredGroup* Link::peer_group_of(std::uint64_t key) {
  const auto found = peer_groups_.find(key);
  return found == peer_groups_.end() ? nullptr : &found->second;
}

// ---- out ----

void Link::queue(Outgoing outgoing) {
  if (broken()) return;
  SETO_CHECK(!outgoing.is_of_gpu() || continues());
  outgoing.count();
  waiting_bytes_ += sizeof(Frame) + outgoing.frame.length;
  waiting_.push(std::move(outgoing));
  if (needed_) return;
  needed_ = true;
  if (const Status asked = opener_->need(); !asked.ok()) break_with(asked);
}

void Link::queue_urgent(const Frame& frame, const std::byte* payload, std::shared_ptr<resume::Lender> lender) {
  if (broken()) return;
  if (urgent_.size() >= kMostUrgent) return break_with(failure(Code::remote_error, "it does not read from its connection"));
  urgent_.push({frame, payload, std::move(lender), nullptr});
}

bool Link::has_output() const {
  return open() && (!waiting_.empty() || !urgent_.empty() || under_way_ > 0 || holds_encrypted() || has_more_to_keep());
}

bool Link::has_waiting() {
  return !waiting_.empty() && may_send(kMostBeyond - kTellAfter) &&
         (!continues() || kept_->may_send(waiting_.front().frame.length));
}

bool Link::has_next(Socket& socket, bool any) {
  if (!socket.own.empty()) return true;
  const bool takes = any && !stands_by(socket) && flow_of(socket).room > 0 && has_waiting();
  return !socket.stalled && (has_pressing() || (takes && (rails() == 0 || route_of(waiting_.front()) == socket.route)));
}

Outgoing Link::next_of(Socket& socket) {
  if (!socket.own.empty()) return socket.own.pop();  // counted in under_way_ already
  ++under_way_;
  if (owes_heard_) return what_was_heard();
  if (has_again()) {
    Outgoing again;
    const std::uint64_t number = kept_->next_again();
    kept_->sent_again(number, socket.index);
    again.frame = kept_->header(number);
    again.frame.flags |= kAgain;
    return again;
  }
  if (has_urgent()) return urgent_.pop();
  Outgoing next = waiting_.pop();
  const std::uint64_t size = sizeof(Frame) + next.frame.length;
  waiting_bytes_ -= size;
  flow_of(socket).take(size);
  return next;
}

// One of several sockets takes about one long frame at a time: the next frame may be better with another socket. The only socket
// beside rails takes as much as it would without them.
void Link::fill(Socket& socket, bool any) {
  const bool alone = rails() > 0 && socket.pipe.rail() == nullptr && flow_of(socket).sockets == 1;
  const std::size_t enough = !numbered() ? ~std::size_t{0} : alone ? kFrameLimit : kStripe;
  for (std::size_t bytes = 0; socket.taken < kBatch && bytes < enough && has_next(socket, any);) {
    Outgoing& next = socket.batch[socket.taken++];
    next = next_of(socket);
    const bool is_numbered = next.frame.kind() != FrameKind::heard && next.frame.kind() != FrameKind::padding;
    if (is_numbered && next.frame.sequence == 0) {
      if (continues())
        keep(next, socket);
      else
        next.frame.sequence = ++sent_;
    }
    next.frame.acknowledged = heard();
    bytes += sizeof(Frame) + next.frame.length;
  }
}

// Writes frames that the socket has taken, as far as the kernel has room. True: bytes moved.
bool Link::write(Socket& socket) {
  return socket.pipe.rail() != nullptr ? write_to_rail(socket) : write_bytes(socket, socket.taken);
}

bool Link::write_bytes(Socket& socket, std::size_t frames) {
  iovec parts[2 * kBatch];
  std::size_t count = 0;
  std::size_t skip = socket.written;
  std::size_t wanted = 0;
  const auto add = [&](const void* data, std::size_t size) {
    if (skip >= size) {
      skip -= size;
      return;
    }
    parts[count++] = {static_cast<char*>(const_cast<void*>(data)) + skip, size - skip};
    wanted += size - skip;
    skip = 0;
  };
  for (std::size_t i = 0; i < frames; ++i) {
    add(&socket.batch[i].frame, sizeof(Frame));
    if (socket.batch[i].frame.length == 0) continue;
    const std::byte* const payload = payload_for(socket, socket.batch[i]);
    if (broken()) return false;
    if (payload == nullptr) break;
    add(payload, socket.batch[i].frame.length);
  }
  if (count == 0) {
    socket.full = true;
    return false;
  }
  const ssize_t sent = socket.pipe.send({parts, count}, wanted);
  socket.full = sent < 0 ? (errno == EAGAIN || errno == ENOBUFS) : static_cast<std::size_t>(sent) < wanted;
  if (sent < 0) {
    if (!socket.full) socket_failed(socket, errno);
    return false;
  }
  if (socket.pipe.held() > 0) socket.full = true;
  count_sent(socket, static_cast<std::size_t>(sent));
  return true;
}

void Link::count_sent(Socket& socket, std::size_t sent) {
  bytes_sent_.store(bytes_sent() + sent, std::memory_order_relaxed);
  socket.unsent += sent;
  socket.in_flight += sent;
  pin_payloads(socket, sent);
  wrote(socket, sent);
}

void Link::wrote(Socket& socket, std::size_t bytes) {
  socket.written += bytes;
  std::size_t gone = 0;
  while (gone < socket.taken && socket.written >= sizeof(Frame) + socket.batch[gone].frame.length) {
    Outgoing& done = socket.batch[gone++];
    socket.written -= sizeof(Frame) + done.frame.length;
    done.done();
    done = Outgoing{};
    --under_way_;
  }
  std::move(socket.batch.begin() + static_cast<std::ptrdiff_t>(gone),
            socket.batch.begin() + static_cast<std::ptrdiff_t>(socket.taken), socket.batch.begin());
  socket.taken -= gone;
}

bool Link::holds_encrypted() const {
  return encrypted_ && std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket->pipe.held() > 0; });
}

bool Link::pending() const {
  return encrypted_ && std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket->pipe.pending(); });
}

// False: the socket has no room for it.
bool Link::flush_encrypted(Socket& socket) {
  if (socket.pipe.flush()) return true;
  if (errno == EAGAIN) return false;
  socket_failed(socket, errno);
  return true;
}

bool Link::flush_one(Socket& socket) {
  bool moved = false;
  for (socket.full = !flush_encrypted(socket); !socket.full && !broken();) {
    fill(socket, true);
    if (socket.taken == 0 || broken() || !write(socket)) break;
    moved = true;
  }
  return moved;
}

// Asks the kernel what it has of each socket, and decides how much of the queue this flush() may write.
void Link::look_at_sockets() {
  follow_routes();
  choose_carriers();
  const std::uint64_t now = monotonic_ns();
  for (RouteFlow& flow : flows_) flow.begin_flush(now);
  bool any_stalled = false;
  for (const auto& socket : sockets_) {
    if (!socket->live()) continue;
    RouteFlow& flow = flow_of(*socket);
    const bool rests = rails() > 0 && (!flow.used || flow.sockets == 1);  // its kernel need not be asked
    socket->unsent = rests ? 0 : socket->pipe.unsent() + socket->pipe.held();
    if (flow.used && !stands_by(*socket)) ++flow.carriers;
    if (flow.used && !stands_by(*socket) && socket->unsent == 0) ++flow.dry;
    socket->full = (far() && socket->unsent >= kMostUnsent) || socket->pipe.held() > 0;
    if (socket->stalled && !socket->route_stalled && socket->pipe.in_flight() == 0 && socket->taken == 0) {
      socket->stalled = false;
      route_moves(socket->route);
    }
    any_stalled = any_stalled || socket->stalled;
    if (!flow.used || !(flow.is_limited() || uses_several_routes())) continue;
    socket->in_flight = socket->pipe.in_flight() + socket->pipe.held();
    if (!socket->stalled) flow.in_flight += socket->in_flight;  // the bytes of a stalled one hold nothing back
  }
  if (any_stalled) leave_dead_paths();
  for (RouteFlow& flow : flows_) flow.decide_room();
}

// First what sockets hold already, then the queue, frame by frame. A socket whose kernel holds enough is not asked.
bool Link::flush_numbered() {
  bool moved = false;
  owes_heard_ = owes_heard_ || (continues() && policy_.due(monotonic_ns()));
  for (const auto& socket : sockets_) {
    if (encrypted_ && socket->live()) (void)flush_encrypted(*socket);
    if (broken()) return true;
  }
  look_at_sockets();
  const bool one_route = flows_.size() == 1;
  // A path that brings frames is likely to carry their acknowledgement, too: the others may stand still.
  if (Socket& latest = *sockets_[latest_in_]; owes_heard_ && !uses_several_routes() && latest.idle() && !stands_by(latest))
    fill(latest, one_route);
  for (const auto& socket : sockets_) {
    if (socket->full || !socket->live()) continue;
    if (socket->taken == 0 && !socket->own.empty()) fill(*socket, one_route);
    if (socket->taken > 0) moved = write(*socket) || moved;
    if (broken()) return moved;
  }
  while (has_shared()) {
    Socket* const next = next_socket();
    if (next == nullptr) break;
    fill(*next, one_route || !has_pressing());
    if (next->taken == 0) break;
    moved = write(*next) || moved;
    if (broken()) break;
  }
  held_back_ = uses_several_routes() && has_waiting();  // perhaps for a route that is faster, but busy
  for (RouteFlow& flow : flows_) {
    flow.end_flush(!waiting_.empty());
    flow.was_empty = flow.was_empty || !has_waiting();
    held_back_ = held_back_ || flow.held_back;
  }
  return moved;
}

bool Link::flush() {
  brings_ = false;
  if (broken() || !has_output() || (continues() && kept_ == nullptr)) {
    held_back_ = false;
    return false;
  }
  const bool moved = numbered() ? flush_numbered() : flush_one(*sockets_.front());
  if (far()) measure();
  return moved;
}

// ---- the end ----

void Link::break_with(const Status& reason) {
  {
    const std::lock_guard lock(why_mutex_);
    if (!why_.ok()) return;
    why_ = reason;
  }
  broken_since_.store(monotonic_ns(), std::memory_order_release);
  broken_.store(true, std::memory_order_release);
  // Frames that will never be written must not keep their buffers busy.
  const auto forget = [](Outgoing& outgoing) {
    outgoing.done();
    return true;
  };
  waiting_.drop_if(forget);
  waiting_bytes_ = 0;
  urgent_.drop_if(forget);
  for (const auto& socket : sockets_) {
    socket->own.drop_if(forget);
    for (std::size_t i = 0; i < socket->taken; ++i) {
      forget(socket->batch[i]);
      socket->batch[i] = Outgoing{};
    }
    socket->taken = 0;
    socket->offered.close();
    drop_pins(*socket);
    // Tells the peer, so that both ends see the connection as broken.
    if (!socket->broken) socket->pipe.shut_down();
  }
  under_way_ = offers_ = 0;
  owes_heard_ = false;
  entered_.clear();
  kept_.reset();
  without_path_since_ = 0;
  if (opener_ != nullptr) opener_->give_up();
  if (dialer_ != nullptr) dialer_->give_up();
  if (rail_opener_ != nullptr) rail_opener_->give_up();
}

Status Link::why() const {
  const std::lock_guard lock(why_mutex_);
  return why_;
}

}  // namespace seto::tcp
