// The reading half of a link.

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>

#include "transports/tcp/link/link.h"

namespace seto::tcp {
namespace {

// Bytes that one pass reads from a socket before other sockets and the engine get their turn.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
// A frame with at least this many missing bytes is read with a call of its own.
constexpr std::size_t kLongFrame = std::size_t{32} << 10;
// Communicators that a peer may open on one connection.
constexpr std::size_t kMostOpened = 65'536;
// Some sockets are closed and the others bring nothing for this time: the peer has closed all of them.
constexpr std::uint64_t kPartlyEndedNs = 2'000'000'000;

}  // namespace

void Link::turn_away(const std::byte* memory, std::size_t size) {
  while (const auto place = told_places_.take_within(memory, size)) end_writers(*place);
  const std::less<> before;
  for (const auto& socket : sockets_)
    if (socket->in_payload && socket->at != nullptr && !before(socket->at, memory) && before(socket->at, memory + size))
      socket->at = nullptr;
}

bool Link::receive() {
  bool moved = false;
  if (continues() && kept_ == nullptr) return false;
  if (!told_places_.empty()) moved = receive_rails();  // what a rail has brought whole need not come again over a socket
  for (const auto& socket : sockets_) {
    if (broken()) break;
    if (socket->live()) moved = receive(*socket) || moved;
  }
  return moved;
}

// One socket at its end says nothing about the input of the other sockets.
bool Link::receive(Socket& socket) {
  const Dry dry = read(socket);
  if (!dry.failure.ok()) {
    lose(dry.failure, &socket);
    return true;
  }
  const int error = dry.ended && continues() ? socket.pipe.send_error() : dry.error;
  if (error != 0) {
    socket_failed(socket, error);
    return true;
  }
  if (dry.ended) path_ended(socket);
  const bool moved = dry.bytes > 0 || dry.ended;
  if (moved) silent_since_ = 0;
  took_from_sockets_ = took_from_sockets_ || (moved && socket.pipe.rail() == nullptr);
  return moved;
}

// This function does not wait for input that arrives meanwhile: a peer that keeps sending must not keep the lock. Nothing can be
// read of a socket behind malformed input.
void Link::lose(const Status& reason, const Socket* malformed) {
  for (const auto& socket : sockets_) {
    std::size_t left = socket->live() && socket.get() != malformed ? socket->pipe.unread() : 0;
    while (left > 0 && !broken()) {
      const Dry dry = read(*socket);
      if (dry.bytes == 0 || dry.ended || dry.error != 0 || !dry.failure.ok()) break;
      left -= std::min(left, dry.bytes);
    }
  }
  break_with(reason);
}

// A peer closes all its sockets at once, but those of a long link may still deliver for seconds: each byte starts the time again.
bool Link::look_after(std::uint64_t (*clock)()) {
  if (broken()) return false;
  if (leaving_ > 0) reset_left_paths();
  if (given_up_.load(std::memory_order_acquire)) {
    lose(failure(Code::remote_error, "its process is lost"));
  } else if (partly_ended_) {
    const std::uint64_t now = clock();
    if (silent_since_ != 0) end_rails();
    if (silent_since_ == 0) silent_since_ = now;
    if (now - silent_since_ > kPartlyEndedNs) lose(closed_by_peer());
  } else if (without_path_since_ != 0) {
    if (clock() - without_path_since_ > patience_ms_ * 1'000'000) break_with(last_break_);
    if (dialer_ != nullptr) dialer_->paths_broke();  // again: a thread for it may have been refused
  } else if (may_stand_still()) {
    look_for_stall(clock());
  }
  return broken();
}

// One call reads the rest of the current payload and, behind it, into the staging area, where the next headers are expected.
Link::Dry Link::read(Socket& socket) {
  Dry dry;
  std::byte dropped[4096];
  for (std::size_t total = 0; total < kReadAtOnce || socket.pipe.pending();) {
    iovec parts[2];
    std::size_t count = 0;
    std::size_t direct = 0;
    if (socket.in_payload) {
      direct = socket.frame.length - socket.got;
      if (socket.at == nullptr) direct = std::min(direct, sizeof dropped);
      parts[count++] = {socket.at == nullptr ? dropped : socket.at + socket.got, direct};
    }
    std::size_t asked = direct;
    if (!socket.in_payload || socket.got + direct == socket.frame.length) {
      // Another long frame usually follows a long frame, and its payload should be read to its destination directly: only its
      // header is read ahead.
      const std::size_t room = direct >= kLongFrame ? sizeof(Frame) : kStaging - socket.end;
      parts[count++] = {socket.staging.data() + socket.end, room};
      asked += room;
    }
    // The bytes that TLS has read already are taken even then, because no event announces them.
    const ssize_t got = total < kReadAtOnce ? socket.pipe.receive({parts, count}) : socket.pipe.receive_held({parts, count});
    if (got < 0 && errno == EAGAIN) return dry;
    if (got < 0) dry.error = errno;
    dry.ended = got == 0;
    if (got <= 0) return dry;
    const auto bytes = static_cast<std::size_t>(got);
    bytes_received_.store(bytes_received() + bytes, std::memory_order_relaxed);
    dry.bytes += bytes;
    total += bytes;
    dry.failure = take_in(socket, std::min(direct, bytes), bytes);
    if (!dry.failure.ok() || (bytes < asked && !socket.pipe.pending())) return dry;
  }
  return dry;
}

// `to_message` of the `bytes` that arrived belong to the current payload, the rest to the staging area.
Status Link::take_in(Socket& socket, std::size_t to_message, std::size_t bytes) {
  socket.got += static_cast<std::uint32_t>(to_message);
  socket.end += bytes - to_message;
  if (socket.in_payload && socket.got == socket.frame.length) SETO_TRY(end_frame(socket));
  return digest_staging(socket);
}

// Parses the frames in the staging area as far as they have arrived.
Status Link::digest_staging(Socket& socket) {
  while (!socket.in_payload && socket.end - socket.begin >= sizeof(Frame)) {
    std::memcpy(&socket.frame, socket.staging.data() + socket.begin, sizeof(Frame));
    socket.begin += sizeof(Frame);
    SETO_TRY(begin_frame(socket));
    if (socket.frame.kind() == FrameKind::data && (socket.frame.flags & kInPlace) != 0) {
      SETO_TRY(take_from_place(socket));
      continue;
    }
    const std::size_t there = std::min<std::size_t>(socket.end - socket.begin, socket.frame.length);
    if (socket.at != nullptr && there > 0) std::memcpy(socket.at, socket.staging.data() + socket.begin, there);
    socket.begin += there;
    socket.got = static_cast<std::uint32_t>(there);
    if (there < socket.frame.length) break;
    SETO_TRY(end_frame(socket));
  }
  if (socket.begin > 0) {
    std::memmove(socket.staging.data(), socket.staging.data() + socket.begin, socket.end - socket.begin);
    socket.end -= socket.begin;
    socket.begin = 0;
  }
  return {};
}

Status Link::begin_frame(Socket& socket) {
  const Frame& frame = socket.frame;
  if (!frame.plausible()) return garbage("no header");
  socket.in_payload = socket.confirmed = true;
  socket.at = nullptr;
  socket.got = 0;
  if (frame.kind() == FrameKind::open && frame.length != Secret::kSize) return garbage("an opening of another size");
  if (frame.kind() == FrameKind::heard) {
    if (!numbered() || frame.sequence != 0 || frame.length > socket.own_words.size()) return garbage("an acknowledgement");
    socket.at = socket.own_words.data();
    return {};
  }
  if (frame.kind() == FrameKind::padding) return continues() && frame.sequence == 0 ? Status() : garbage("padding");
  if (frame.kind() == FrameKind::place && (rails() == 0 || frame.length != sizeof(PlaceWords))) return garbage("a place");
  if (numbered()) {
    if (rails() > 0) end_writer_of(socket);
    SETO_ASSIGN(const bool first, begin_copy(socket));
    if (!first) return {};
  } else {
    SETO_TRY(check_number(frame.sequence));
  }
  if (is_for_link(frame)) {
    socket.at = socket.own_words.data();
    return {};
  }
  if (frame.kind() == FrameKind::rate || frame.kind() == FrameKind::sockets)
    return frame.length == 0 ? Status() : garbage("a payload in a frame that has none");
  if (opened_.count(frame.peer_group) == 0) return garbage("frames of a communicator that was not opened");
  if (EnteredGroup* const peer_group = peer_group_of(frame.peer_group)) {
    SETO_ASSIGN(socket.at, peer_group->sink->place(peer_group->member, frame));
  }
  return {};
}

// A frame that comes again must be the same: a copy of its header may have more news only. None comes again where nothing is
// kept.
Result<bool> Link::begin_copy(Socket& socket) {
  const Frame& frame = socket.frame;
  SETO_ASSIGN(const resume::Arrivals::Begun begun, arrivals_->begin(socket.index, frame.sequence));
  if (begun.action == resume::Arrivals::Action::place) return true;
  if (!continues()) return garbage("a sequence number twice");
  if (begun.action == resume::Arrivals::Action::drop) return false;
  const Socket& other = *sockets_[begun.with];
  Frame same = other.frame;
  same.acknowledged = frame.acknowledged;
  same.flags = static_cast<std::uint8_t>((same.flags & ~kOfThisSending) | (frame.flags & kOfThisSending));
  if (std::memcmp(&same, &frame, sizeof frame) != 0) return garbage("two frames with one number");
  socket.at = is_for_link(frame) ? socket.own_words.data() : other.at;
  return false;
}

// Copies of it on other paths must not write to its memory any more when the frame is passed on.
Result<bool> Link::end_copy(Socket& socket) {
  const resume::Arrivals::Completed completed = arrivals_->complete(socket.index);
  for (const auto& other : sockets_)
    if ((completed.turn_away & resume::PathSet{1} << other->index) != 0) other->at = nullptr;
  if (!continues()) {
    // Every frame tells what was heard. But this end may only receive, and a frame may be stuck in a socket that stands still.
    if (heard() - told_ >= kTellAfter) {
      told_ = heard();
      owes_heard_ = true;
    }
  } else if (completed.counts) {
    policy_.arrived(sizeof(Frame) + socket.frame.length, monotonic_ns());
  } else {
    policy_.tell_again();  // the sender does not know it
  }
  return completed.counts;
}

Status Link::hear(const resume::Heard& heard) {
  if (broken()) return {};
  if (heard.last() > sent()) return garbage("an acknowledgement of frames that were not sent");
  if (continues() && (heard.all_up_to > acknowledged_ || heard.count > 0)) SETO_TRY(kept_->acknowledge(heard));
  if (continues() && heard.all_up_to > acknowledged_) {
    progress_ns_ = monotonic_ns();
    if (choice_ != nullptr && choice_->acknowledged(heard.all_up_to, progress_ns_)) say_choice();
  }
  acknowledged_ = std::max(acknowledged_, heard.all_up_to);
  return {};
}

Status Link::end_frame(Socket& socket) {
  socket.in_payload = false;
  const Frame& frame = socket.frame;
  if (frame.kind() == FrameKind::heard) {
    SETO_ASSIGN(const resume::Heard heard, resume::decode_heard({socket.own_words.data(), frame.length}));
    if (!gap_) progress_ns_ = monotonic_ns();
    gap_ = continues() && heard.count > 0;
    return hear(heard);
  }
  if (frame.kind() == FrameKind::padding) return {};
  resume::Heard heard;
  heard.all_up_to = frame.acknowledged;
  SETO_TRY(hear(heard));
  if (numbered()) {
    latest_in_ = socket.index;
    SETO_ASSIGN(const bool counts, end_copy(socket));
    if (!counts) return {};
    if (continues() && frame.kind() == FrameKind::data && (frame.flags & kTellHeard) != 0) policy_.tell_again();
  } else {
    heard_ = frame.sequence;
  }
  if (frame.kind() == FrameKind::open) return hear_opening(socket);
  if (frame.kind() == FrameKind::place) return hear_place(socket);
  if (frame.kind() == FrameKind::rate) return hear_rate(frame);
  if (frame.kind() == FrameKind::sockets) {
    hear_sockets(frame);
    return {};
  }
  if (EnteredGroup* const peer_group = peer_group_of(frame.peer_group))
    return peer_group->sink->arrived(peer_group->member, frame, socket.at);
  return {};
}

// The window never shrinks: what was granted may be under way. The memory for it is limited where it is reserved (WindowBudget).
Status Link::hear_rate(const Frame& frame) {
  const std::uint64_t rate = std::min(frame.mark, static_cast<std::uint64_t>(RateSampler::kLargestRate));
  const std::uint64_t round_trip_us = std::clamp(frame.size, round_trip_us_, RateSampler::kLongestRoundTripUs);
  const std::uint64_t needed = kRoundTripsAWindow * (rate / 1'000) * round_trip_us / 1'000;
  if (!far() || needed <= pipe_) return {};
  pipe_ = needed;
  for (const auto& [number, peer_group] : peer_groups_) peer_group.sink->pipe_grew(peer_group.member);
  return {};
}

Status Link::hear_opening(const Socket& socket) {
  const Frame& frame = socket.frame;
  const std::string_view shown(reinterpret_cast<const char*>(socket.own_words.data()), Secret::kSize);
  if (!equal(shown, proof_of(frame.peer_group, frame.digest).bytes())) return garbage("an opening that proves nothing");
  if (opened_.size() >= kMostOpened)
    std::erase_if(opened_, [this](std::uint64_t peer_group) { return peer_groups_.count(peer_group) == 0; });
  opened_.insert(frame.peer_group);
  return {};
}

Status Link::check_number(std::uint64_t sequence) const {
  if (sequence <= heard_) return garbage("a sequence number twice");
  return sequence == heard_ + 1 ? Status() : garbage("a sequence number is left out");
}

}  // namespace seto::tcp
