#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "src/base/status.h"
#include "transports/byte_pipe.h"
#include "transports/geometry.h"
#include "transports/optional_streams.h"
#include "transports/tcp/frames/frame.h"

// Where the receiver of a stream wants its payloads, so that rails of the sender write them there (decision 55).
namespace seto::tcp {

// A rail of a link: its number among the places for rails, and the attempt that opened it. The same at both ends.
struct RailName {
  std::uint32_t rail = 0;
  std::uint32_t attempt = 0;
  friend bool operator==(const RailName&, const RailName&) = default;
};

// The payload of FrameKind::place: slice s of the operation of `mark` belongs at `first + s * stride`, as in Placement.
struct PlaceWords {
  static constexpr std::size_t kMostKeys = 4;
  struct Key {
    RailName rail;
    std::uint32_t key = 0;
  };

  std::uint64_t first = 0;
  std::uint64_t size = 0;
  std::uint64_t until = 0;
  std::uint32_t stride = 0;
  std::uint32_t keys = 0;
  std::array<Key, kMostKeys> key{};
};
static_assert(sizeof(PlaceWords) == 80);

// A stream between two ends of a link.
struct StreamName {
  std::uint64_t peer_group = 0;
  std::uint16_t port = 0;
  std::uint8_t group = 0;
  friend auto operator<=>(const StreamName&, const StreamName&) = default;
};
inline StreamName stream_of(const Frame& frame) { return {frame.peer_group, frame.port, frame.group}; }

// The places that the peer has told.
class RemotePlaces final {
 public:
  // The payloads of more streams travel as bytes.
  static constexpr std::size_t kMostStreams = 1'024;

  Status hear(const Frame& frame, const PlaceWords& words);
  // Where that rail may write the payload of a frame of data.
  [[nodiscard]] std::optional<BytePipe::RemotePlace> target_of(const Frame& frame, RailName rail) const;
  void forget(std::uint64_t peer_group);
  [[nodiscard]] bool empty() const { return places_.empty(); }

 private:
  struct Place {
    std::uint64_t operation = 0;
    std::uint32_t digest = 0;
    PlaceWords words;
  };
  std::map<StreamName, std::array<Place, kWindow>> places_;
};

// The places that this end has told.
class ToldPlaces final {
 public:
  // A rail writes there with this key; `permission`: its name at the own pipe.
  struct Grant {
    RailName rail;
    std::uint32_t key = 0;
    std::uint32_t permission = 0;
  };
  struct Place {
    Placement where;                                    // `until`: as told
    std::array<Grant, PlaceWords::kMostKeys> grants{};  // by rail; attempt 0: it has none
  };

  // The place of that operation, made if there is none. An older one in its slot is returned in `over`.
  Place& place_of(const StreamName& stream, std::uint64_t operation, Place& over);
  // The place ends, if this was its last slice. Absent: it goes on, or there is none.
  [[nodiscard]] std::optional<Place> released(const StreamName& stream, Mark mark);
  // Removes one place that overlaps with the memory, or belongs to the communicator. Absent: there is none.
  [[nodiscard]] std::optional<Place> take_within(const std::byte* memory, std::size_t size);
  [[nodiscard]] std::optional<Place> take_of(std::uint64_t peer_group);
  // Where the payload of that frame was to be written. Null: no rail may write it.
  [[nodiscard]] std::byte* at(const Frame& frame, RailName rail) const;
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  Place take(Place& place);

  std::map<StreamName, std::array<Place, kWindow>> places_;
  std::size_t count_ = 0;  // that have not ended
};

}  // namespace seto::tcp
