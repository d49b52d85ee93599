// Payloads that rails write where the receiver wants them (decision 55).

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/tcp/link/link.h"

namespace seto::tcp {
namespace {

// A longer permission for an operation is told once it has grown by so many bytes: a frame and its record cost as much as a copy
// of some ten KiB.
constexpr std::uint64_t kWorthTelling = std::uint64_t{256} << 10;

// The words of one frame, as long as it is kept.
struct FrameOfPlace {
  PlaceWords words;
  resume::Lender lender;
};

std::span<const std::byte> bytes_of(const Frame& frame) { return std::as_bytes(std::span(&frame, 1)); }

}  // namespace

RailName Link::name_of(const Socket& rail) const {
  return {static_cast<std::uint32_t>(rail.index - (sockets_.size() - rails())), rail.of_attempt};
}

// ---- the receiver ----

bool Link::tell_place(const Frame& stream, const Placement& wanted) {
  if (broken() || kept_ == nullptr || !has_live_rail()) return false;
  ToldPlaces::Place over;
  ToldPlaces::Place& place = told_places_.place_of(stream_of(stream), wanted.operation, over);
  end_writers(over);
  const std::uint64_t slices = (wanted.size + wanted.stride - 1) / wanted.stride;
  const std::uint64_t until = std::min(wanted.until, slices);
  const std::uint64_t more = until - std::min(until, place.where.until);
  if (more == 0 || (until < slices && more * wanted.stride < kWorthTelling)) return false;
  place.where = wanted;
  place.where.until = until;
  PlaceWords words{reinterpret_cast<std::uint64_t>(wanted.first), wanted.size, until, static_cast<std::uint32_t>(wanted.stride)};
  for (std::size_t path = sockets_.size() - rails(); path < sockets_.size(); ++path)
    if (sockets_[path]->live()) grant(place, *sockets_[path], words);
  if (words.keys == 0) {  // most memory has no name
    end_place(stream, mark_of(wanted.operation, slices - 1));
    return false;
  }
  const auto told = std::make_shared<FrameOfPlace>();
  told->words = words;
  Frame frame = stream;
  frame.set_kind(FrameKind::place);
  frame.mark = mark_of(wanted.operation, 0);
  frame.length = sizeof(PlaceWords);
  queue_urgent(frame, reinterpret_cast<const std::byte*>(&told->words), {told, &told->lender});
  return true;
}

// A permission that was given before is told again.
void Link::grant(ToldPlaces::Place& place, Socket& rail, PlaceWords& words) {
  const RailName name = name_of(rail);
  if (name.rail >= place.grants.size()) return;
  ToldPlaces::Grant& grant = place.grants[name.rail];
  if (grant.rail != name) {
    const auto open = rail.pipe.open_place(place.where.first, place.where.size);
    if (!open.has_value()) return;
    grant = {name, open->key, open->name};
  }
  words.key[words.keys++] = {name, grant.key};
}

// Null: it has ended.
Link::Socket* Link::writer_of(const ToldPlaces::Grant& grant) {
  if (grant.rail.attempt == 0) return nullptr;
  Socket& rail = *sockets_[sockets_.size() - rails() + grant.rail.rail];
  return rail.of_attempt == grant.rail.attempt && rail.pipe.valid() ? &rail : nullptr;
}

// All that may be written there has been.
void Link::end_place(const Frame& stream, Mark released) {
  const auto place = told_places_.empty() ? std::nullopt : told_places_.released(stream_of(stream), released);
  if (!place.has_value()) return;
  for (const ToldPlaces::Grant& grant : place->grants)
    if (Socket* const rail = writer_of(grant)) rail->pipe.close_place(grant.permission);
}

// Its owner has the memory back after this call: what is on its way there must find no queue pair.
void Link::end_writers(const ToldPlaces::Place& place) {
  for (const ToldPlaces::Grant& grant : place.grants)
    if (Socket* const rail = writer_of(grant)) end_rail(*rail);
}

// The next pump reads what has come over it before, and finds it broken. Any thread may end a rail, but only the holder of the
// token may un-place what it has brought half.
void Link::end_rail(Socket& rail) {
  rail.pipe.shut_down();
  rails_end_ = true;
}

// The first sending may have been lost with its rail, or may still be on its way. A frame that has come needs nothing.
void Link::end_writer_of(const Socket& socket) {
  const std::uint8_t writer = socket.frame.flags & kWriter;
  if (socket.frame.kind() != FrameKind::data || writer == 0 || arrivals_->received().has(socket.frame.sequence)) return;
  for (std::size_t path = sockets_.size() - rails(); path < sockets_.size(); ++path) {
    Socket& rail = *sockets_[path];
    if (&rail != &socket && rail.pipe.rail() != nullptr && written_by(rail.of_attempt) == writer) end_rail(rail);
  }
}

// The place of a call that has failed is not there any more: the payload is dropped, and the frame counts.
Status Link::take_from_place(Socket& socket) {
  const Frame& frame = socket.frame;
  if (socket.pipe.rail() == nullptr || frame.length < BytePipe::kLongPart)
    return garbage("a payload in place that no rail has written");
  const std::byte* const from = told_places_.at(frame, name_of(socket));
  if (from != nullptr && socket.at != nullptr && socket.at != from) std::memcpy(socket.at, from, frame.length);
  if (const EnteredGroup* const peer_group = peer_group_of(frame.peer_group);
      from == nullptr && socket.at != nullptr && peer_group != nullptr) {
    peer_group->sink->unplace(peer_group->member, frame, socket.at);
    socket.at = nullptr;
  }
  bytes_received_.store(bytes_received() + frame.length, std::memory_order_relaxed);
  socket.got = frame.length;
  return end_frame(socket);
}

// ---- the sender ----

Status Link::hear_place(const Socket& socket) {
  PlaceWords words;
  std::memcpy(&words, socket.own_words.data(), sizeof words);
  return peer_group_of(socket.frame.peer_group) == nullptr ? Status() : remote_.hear(socket.frame, words);
}

// Where that rail may write the payload of a frame that it has taken. Only the first sending may: later, the call of the receiver
// may have ended.
std::optional<BytePipe::RemotePlace> Link::target_of(const Socket& rail, std::size_t taken) const {
  const Frame& frame = rail.batch[taken].frame;
  if (frame.kind() != FrameKind::data || frame.length < BytePipe::kLongPart || (frame.flags & kAgain) != 0) return std::nullopt;
  return remote_.target_of(frame, name_of(rail));
}

// True: bytes moved.
bool Link::write_to_rail(Socket& rail) {
  bool moved = false;
  for (rail.full = false; rail.taken > 0 && !rail.full && rail.live() && !broken();) {
    const auto target = rail.written == 0 ? target_of(rail, 0) : std::nullopt;
    if (target.has_value() && write_in_place(rail, *target)) {
      moved = true;
      continue;
    }
    if (rail.full || !rail.live()) break;
    std::size_t frames = 1;
    while (frames < rail.taken && !target_of(rail, frames).has_value()) ++frames;
    if (!write_bytes(rail, frames)) break;
    moved = true;
  }
  return moved;
}

// False and not full: its payload is to be sent.
bool Link::write_in_place(Socket& rail, BytePipe::RemotePlace target) {
  Frame frame = rail.batch[0].frame;
  frame.flags |= kInPlace;
  const std::span<const std::byte> payload{payload_of(rail.batch[0]), frame.length};
  const ssize_t sent = rail.pipe.write_in_place(bytes_of(frame), payload, target);
  if (sent < 0) {
    rail.full = errno == EAGAIN;
    if (!rail.full && errno != EOPNOTSUPP) socket_failed(rail, errno);
    return false;
  }
  kept_->header(frame.sequence).flags |= written_by(rail.of_attempt);
  count_sent(rail, static_cast<std::size_t>(sent));
  return true;
}

}  // namespace seto::tcp
