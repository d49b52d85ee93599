#include "src/engine/device_channels.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace seto {
namespace {

using kernels::ChannelEnd;
using kernels::kFlagStride;

constexpr std::uint64_t kLine = 128;

// Sender, group (or 0), port, receiver: each end derives it alone.
using Address = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t>;

Address address_of(const BoundStream& stream, std::uint32_t receiver) {
  return {stream.address.sender, stream.address.group, stream.address.port, receiver};
}

bool sends(const BoundProgram& program, const BoundStream& stream) {
  return stream.address.sender == static_cast<std::uint32_t>(program.rank);
}

// The pieces of the messages of each stream.
std::vector<std::uint32_t> pieces_of_streams(const BoundProgram& program) {
  std::vector<std::uint32_t> pieces(program.streams.size(), 1);
  for (const BoundStep& step : program.steps) {
    for (const BoundSource& source : program.sources_of(step))
      if (source.space == Space::channel) pieces[source.stream] = step.pieces;
    for (const BoundTarget& target : program.targets_of(step))
      if (target.space == Space::channel) pieces[target.stream] = step.pieces;
  }
  return pieces;
}

}  // namespace

// Goes over the streams of all ranks twice: senders make the pairs, then every end finds its own.
class DeviceChannels::Joiner {
 public:
  Joiner(std::span<const BoundProgram> programs, const DeviceCut& cut) : programs_(programs), cut_(cut) {
    joined_.places_.resize(programs.size());
    joined_.workspaces_.resize(programs.size(), kFlagArea);
    flags_.resize(programs.size(), done_flag(programs.size()));
  }

  Result<DeviceChannels> run() {
    for (const BoundProgram& program : programs_) {
      SETO_ASSIGN(geometries_.emplace_back(), DeviceGeometry::of(program, cut_));
      pieces_.push_back(pieces_of_streams(program));
    }
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      for (std::size_t s = 0; s < programs_[rank].streams.size(); ++s)
        if (sends(programs_[rank], programs_[rank].streams[s])) SETO_TRY(add_pairs(rank, s));
    const std::uint64_t most_flags = *std::max_element(flags_.begin(), flags_.end());
    if (most_flags > kFlagArea)
      return failure(Code::invalid_usage, "the flags of %u blocks of %zu ranks take %ju bytes, and a workspace has %zu for them",
                     cut_.blocks, programs_.size(), std::uintmax_t{most_flags}, kFlagArea);
    is_received_.resize(joined_.pairs_.size());
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      for (std::size_t s = 0; s < programs_[rank].streams.size(); ++s) SETO_TRY(find_pairs(rank, s));
    const auto missing = std::find(is_received_.begin(), is_received_.end(), false);
    if (missing == is_received_.end()) return std::move(joined_);
    const Pair& pair = joined_.pairs_[static_cast<std::size_t>(missing - is_received_.begin())];
    return failure(Code::invalid_argument, "rank %zu sends messages to rank %zu, which does not receive them", pair.sender,
                   pair.receiver);
  }

 private:
  std::uint64_t reserve_slots(std::size_t rank, std::uint64_t size) {
    std::size_t& end = joined_.workspaces_[rank];
    return std::exchange(end, end + (size + kLine - 1) / kLine * kLine);
  }
  // The flags of all blocks.
  std::uint64_t reserve_flags(std::size_t rank) {
    std::uint64_t& end = flags_[rank];
    return std::exchange(end, end + cut_.blocks * kFlagStride);
  }

  [[nodiscard]] std::uint64_t slot_size(std::size_t rank, std::size_t s) const {
    return geometries_[rank].slot_size(pieces_[rank][s], programs_[rank].streams[s].coded);
  }

  Status add_pairs(std::size_t rank, std::size_t s) {
    const BoundStream& stream = programs_[rank].streams[s];
    const std::uint64_t slot = slot_size(rank, s);
    for (const std::uint32_t receiver : stream.receivers) {
      if (receiver >= programs_.size() || slot > kLargestSlot)
        return failure(Code::invalid_argument, "rank %zu cannot send messages of %ju bytes to rank %u", rank,
                       std::uintmax_t{slot}, receiver);
      Pair pair{.sender = rank, .receiver = receiver, .depth = std::max(1U, stream.geometry.depth)};
      pair.slot_size = static_cast<std::uint32_t>(slot);
      pair.block_stride = pair.depth * slot;
      pair.slots = reserve_slots(receiver, cut_.blocks * pair.block_stride);
      pair.posted = reserve_flags(receiver);
      pair.read = reserve_flags(rank);
      by_address_[address_of(stream, receiver)] = joined_.pairs_.size();
      joined_.pairs_.push_back(pair);
    }
    return {};
  }

  Status find_pairs(std::size_t rank, std::size_t s) {
    const BoundStream& stream = programs_[rank].streams[s];
    std::vector<std::size_t>& places = joined_.places_[rank].emplace_back();
    if (sends(programs_[rank], stream)) {
      for (const std::uint32_t receiver : stream.receivers) places.push_back(by_address_[address_of(stream, receiver)]);
      return {};
    }
    const auto found = by_address_.find(address_of(stream, static_cast<std::uint32_t>(rank)));
    if (found == by_address_.end())
      return failure(Code::invalid_argument, "rank %zu receives from rank %u on port %u, where that rank sends nothing", rank,
                     stream.address.sender, stream.address.port);
    const Pair& pair = joined_.pairs_[found->second];
    if (pair.slot_size != slot_size(rank, s) || programs_[pair.sender].slices != programs_[rank].slices)
      return failure(Code::invalid_argument, "ranks %zu and %zu disagree about the messages on port %u", pair.sender, rank,
                     stream.address.port);
    is_received_[found->second] = true;
    places.push_back(found->second);
    return {};
  }

  std::span<const BoundProgram> programs_;
  DeviceCut cut_;
  std::vector<std::uint64_t> flags_;                // where those of a rank end
  std::vector<DeviceGeometry> geometries_;          // by rank
  std::vector<std::vector<std::uint32_t>> pieces_;  // of the messages, by rank and stream
  std::map<Address, std::size_t> by_address_;       // in pairs_
  std::vector<bool> is_received_;                   // by pair
  DeviceChannels joined_;
};

std::uint64_t DeviceChannels::done_flag(std::size_t rank) {
  static_assert(sizeof(kernels::WorkspaceBegin) <= kFlagStride);
  return (1 + rank) * kFlagStride;
}

Result<DeviceChannels> DeviceChannels::join(std::span<const BoundProgram> programs, const DeviceCut& cut) {
  return Joiner(programs, cut).run();
}

DeviceEnds DeviceChannels::ends_of(std::size_t rank, std::span<const kernels::Address> workspaces) const {
  DeviceEnds ends;
  for (const std::vector<std::size_t>& places : places_[rank]) {
    std::vector<ChannelEnd>& of_stream = ends.streams.emplace_back();
    for (const std::size_t place : places) {
      const Pair& pair = pairs_[place];
      of_stream.push_back({workspaces[pair.receiver] + pair.slots, workspaces[pair.receiver] + pair.posted,
                           workspaces[pair.sender] + pair.read, pair.block_stride, pair.depth, pair.slot_size});
    }
  }
  for (std::size_t peer = 0; peer < workspaces.size(); ++peer)
    if (peer != rank) ends.peers.push_back({workspaces[rank] + done_flag(peer), workspaces[peer] + done_flag(rank)});
  return ends;
}

}  // namespace seto
