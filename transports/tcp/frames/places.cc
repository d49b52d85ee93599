#include "transports/tcp/frames/places.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace seto::tcp {
namespace {

// Bytes of a slice that may be written. `limit`: slices below it may be.
std::uint64_t size_of(const PlaceWords& words, std::uint64_t slice) {
  const std::uint64_t offset = slice * words.stride;
  return slice < words.until && offset < words.size ? std::min<std::uint64_t>(words.stride, words.size - offset) : 0;
}

}  // namespace

// ---- of the peer ----

Status RemotePlaces::hear(const Frame& frame, const PlaceWords& words) {
  if (words.stride == 0 || words.keys > PlaceWords::kMostKeys || words.until > kMaxSlices + 1) return garbage("a place");
  if (places_.size() >= kMostStreams && places_.count(stream_of(frame)) == 0) return {};
  const std::uint64_t operation = operation_of(frame.mark);
  Place& place = places_[stream_of(frame)][operation % kWindow];
  // Frames that tell more overtake each other.
  if (operation > place.operation || (operation == place.operation && words.until > place.words.until))
    place = {operation, frame.digest, words};
  return {};
}

std::optional<BytePipe::RemotePlace> RemotePlaces::target_of(const Frame& frame, RailName rail) const {
  const auto found = places_.find(stream_of(frame));
  if (found == places_.end()) return std::nullopt;
  const std::uint64_t operation = operation_of(frame.mark);
  const Place& place = found->second[operation % kWindow];
  if (place.operation != operation || place.digest != frame.digest) return std::nullopt;
  const std::uint64_t slice = slice_of(frame.mark);
  if (size_of(place.words, slice) != frame.size) return std::nullopt;
  for (std::uint32_t i = 0; i < place.words.keys; ++i)
    if (place.words.key[i].rail == rail)
      return BytePipe::RemotePlace{place.words.first + slice * place.words.stride + frame.offset, place.words.key[i].key};
  return std::nullopt;
}

void RemotePlaces::forget(std::uint64_t peer_group) {
  std::erase_if(places_, [peer_group](const auto& each) { return each.first.peer_group == peer_group; });
}

// ---- of this end ----

ToldPlaces::Place& ToldPlaces::place_of(const StreamName& stream, std::uint64_t operation, Place& over) {
  Place& place = places_[stream][operation % kWindow];
  if (place.where.operation == operation) return place;
  if (place.where.operation != 0) over = take(place);
  place.where.operation = operation;
  ++count_;
  return place;
}

ToldPlaces::Place ToldPlaces::take(Place& place) {
  --count_;
  return std::exchange(place, Place{});
}

std::optional<ToldPlaces::Place> ToldPlaces::released(const StreamName& stream, Mark mark) {
  const auto found = places_.find(stream);
  if (found == places_.end()) return std::nullopt;
  Place& place = found->second[operation_of(mark) % kWindow];
  const bool goes_on = (slice_of(mark) + 1) * place.where.stride < place.where.size;
  if (place.where.operation != operation_of(mark) || goes_on) return std::nullopt;
  return take(place);
}

std::optional<ToldPlaces::Place> ToldPlaces::take_within(const std::byte* memory, std::size_t size) {
  const std::less<> before;
  for (auto& [stream, places] : places_)
    for (Place& place : places)
      if (place.where.operation != 0 && before(place.where.first, memory + size) &&
          before(memory, place.where.first + place.where.size))
        return take(place);
  return std::nullopt;
}

std::optional<ToldPlaces::Place> ToldPlaces::take_of(std::uint64_t peer_group) {
  for (auto each = places_.begin(); each != places_.end();) {
    if (each->first.peer_group != peer_group) {
      ++each;
      continue;
    }
    for (Place& place : each->second)
      if (place.where.operation != 0) return take(place);
    each = places_.erase(each);
  }
  return std::nullopt;
}

std::byte* ToldPlaces::at(const Frame& frame, RailName rail) const {
  const auto found = places_.find(stream_of(frame));
  if (found == places_.end()) return nullptr;
  const Place& place = found->second[operation_of(frame.mark) % kWindow];
  const std::uint64_t slice = slice_of(frame.mark);
  if (place.where.operation != operation_of(frame.mark) || place.where.size_of(slice) != frame.size) return nullptr;
  if (frame.offset > frame.size || frame.length > frame.size - frame.offset) return nullptr;
  const bool granted = rail.rail < place.grants.size() && place.grants[rail.rail].rail == rail;
  return granted ? place.where.first + slice * place.where.stride + frame.offset : nullptr;
}

}  // namespace seto::tcp
