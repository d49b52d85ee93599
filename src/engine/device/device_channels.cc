#include "src/engine/device/device_channels.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "src/engine/kernels/device_launch.h"

namespace seto {
namespace {

using kernels::ChannelEnd;
using kernels::kFlagStride;

constexpr std::uint64_t kLine = 128;
constexpr std::uint32_t kRelayedSlots = 4;  // a relayed message waits in slots only until the relay comes

// Sender, group (or 0), port, receiver: each end derives it alone.
using Address = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t>;

Address address_of(const BoundStream& stream, std::uint32_t receiver) {
  return {stream.address.sender, stream.address.group, stream.address.port, receiver};
}

bool sends(const BoundProgram& program, const BoundStream& stream) {
  return stream.address.sender == static_cast<std::uint32_t>(program.rank);
}

// Bytes of a slot for marked messages, with their marks.
std::uint64_t marked_slot(std::size_t ranks) { return kernels::kMarkedArea / (ranks * kernels::kMarkedSlots) / kLine * kLine; }

// The step that sends or receives the messages of each stream; null: none.
std::vector<const BoundStep*> steps_of_streams(const BoundProgram& program) {
  std::vector<const BoundStep*> steps(program.streams.size(), nullptr);
  for (const BoundStep& step : program.steps) {
    for (const BoundSource& source : program.sources_of(step))
      if (source.space == Space::channel) steps[source.stream] = &step;
    for (const BoundTarget& target : program.targets_of(step))
      if (target.space == Space::channel) steps[target.stream] = &step;
  }
  return steps;
}

}  // namespace

// Goes over the streams of all ranks twice: senders make the pairs, then every end finds its own.
class DeviceChannels::Joiner {
 public:
  Joiner(std::span<const BoundProgram> programs, const DeviceCut& cut, const RelayedPairs& relayed)
      : programs_(programs), cut_(cut) {
    joined_.relayed_ = relayed;
    joined_.places_.resize(programs.size());
    joined_.workspaces_.resize(programs.size(), kFlagArea + kernels::kMarkedArea);
    joined_.staging_.resize(programs.size(), kFlagArea);
    flags_.resize(programs.size(), done_flag(programs.size()));
    staged_flags_.resize(programs.size(), kRelayDone + kFlagStride);
  }

  Result<DeviceChannels> run() {
    if (cut_.marked) SETO_TRY(check_exchange());
    for (const BoundProgram& program : programs_) {
      SETO_ASSIGN(geometries_.emplace_back(), DeviceGeometry::of(program, cut_));
      steps_.push_back(steps_of_streams(program));
    }
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      for (std::size_t s = 0; s < programs_[rank].streams.size(); ++s)
        if (!sends(programs_[rank], programs_[rank].streams[s]))
          received_at_[address_of(programs_[rank].streams[s], static_cast<std::uint32_t>(rank))] = delay_of(rank, s);
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      for (std::size_t s = 0; s < programs_[rank].streams.size(); ++s)
        if (sends(programs_[rank], programs_[rank].streams[s])) SETO_TRY(add_pairs(rank, s));
    const std::uint64_t most_flags =
        std::max(*std::max_element(flags_.begin(), flags_.end()), *std::max_element(staged_flags_.begin(), staged_flags_.end()));
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
  static std::uint64_t reserve_slots(std::size_t& end, std::uint64_t size) {
    return std::exchange(end, end + (size + kLine - 1) / kLine * kLine);
  }
  // The flags of all blocks.
  [[nodiscard]] std::uint64_t reserve_flags(std::uint64_t& end) const {
    return std::exchange(end, end + cut_.blocks * kFlagStride);
  }

  // A rank that has received from all others must know that each of them has ended the exchange before, and a word must have one
  // writer. So every rank sends one message to every other, and none is empty.
  [[nodiscard]] Status check_exchange() const {
    const auto refuse = [](std::size_t rank, const char* why) {
      return failure(Code::internal, "rank %zu: a call whose messages are marked %s", rank, why);
    };
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      const BoundProgram& program = programs_[rank];
      if (cut_.blocks != 1 || program.slices != 1 || program.codec != 0 || joined_.relayed_.any())
        return refuse(rank, "has several blocks or slices, a codec or a relay");
      if (std::find(program.lengths.begin(), program.lengths.end(), 0U) != program.lengths.end())
        return refuse(rank, "has an empty part");
      std::vector<std::uint32_t> to(programs_.size()), from(programs_.size());
      to[rank] = from[rank] = 1;
      for (const BoundStream& stream : program.streams) {
        if (stream.lent) return refuse(rank, "lends one of them");
        if (!sends(program, stream)) ++from[stream.address.sender];
        for (const std::uint32_t receiver : stream.receivers)
          if (sends(program, stream)) ++to[receiver];
      }
      const auto is_one = [](std::uint32_t count) { return count == 1; };
      if (!std::all_of(to.begin(), to.end(), is_one) || !std::all_of(from.begin(), from.end(), is_one))
        return refuse(rank, "is not one message from every rank to every other");
    }
    return {};
  }

  void reserve(Pair& pair) {
    if (pair.marked) return;
    const std::uint64_t size = cut_.blocks * pair.block_stride;
    if (!pair.relayed) {
      if (!pair.lent) pair.slots = reserve_slots(joined_.workspaces_[pair.receiver], size);
      pair.posted = reserve_flags(flags_[pair.receiver]);
      pair.read = reserve_flags(flags_[pair.sender]);
      return;
    }
    pair.port = ports_[{pair.sender, pair.receiver}]++;
    for (const auto& [rank, staged] : {std::pair{pair.sender, &pair.at_sender}, std::pair{pair.receiver, &pair.at_receiver}}) {
      staged->slots = reserve_slots(joined_.staging_[rank], size);
      staged->posted = reserve_flags(staged_flags_[rank]);
      staged->read = reserve_flags(staged_flags_[rank]);
    }
  }

  [[nodiscard]] std::uint64_t slot_size(std::size_t rank, std::size_t s) const {
    const BoundStep* const step = steps_[rank][s];
    return geometries_[rank].slot_size(step != nullptr ? step->pieces : 1, programs_[rank].streams[s].coded);
  }
  // The round in which slice 0 of a stream is sent or received.
  [[nodiscard]] std::uint32_t delay_of(std::size_t rank, std::size_t s) const {
    return steps_[rank][s] != nullptr ? cut_.delay_of(steps_[rank][s]->stage) : 0;
  }
  // Messages by which the sender may be ahead of the receiver. The bound depth is enough if stages follow each other. If they are
  // delayed, the sender needs a slot for each round until the receiver reads, and one more so that they do not wait for each
  // other.
  [[nodiscard]] std::uint32_t ahead_of(std::size_t rank, std::size_t s, std::uint32_t receiver) const {
    const BoundStream& stream = programs_[rank].streams[s];
    if (cut_.delays.empty()) return std::max(1U, stream.geometry.depth);
    const auto received = received_at_.find(address_of(stream, receiver));
    const std::uint32_t sent = delay_of(rank, s);
    return received == received_at_.end() || received->second < sent ? 2 : received->second - sent + 2;
  }

  Status add_pairs(std::size_t rank, std::size_t s) {
    const BoundStream& stream = programs_[rank].streams[s];
    const std::uint64_t slot = slot_size(rank, s);
    for (const std::uint32_t receiver : stream.receivers) {
      if (receiver >= programs_.size() || slot > kLargestSlot)
        return failure(Code::invalid_argument, "rank %zu cannot send messages of %ju bytes to rank %u", rank,
                       std::uintmax_t{slot}, receiver);
      Pair pair{.sender = rank, .receiver = receiver};
      pair.relayed = joined_.relayed_.has(rank, receiver);
      pair.ahead = ahead_of(rank, s, receiver);
      pair.depth = pair.relayed ? std::min(pair.ahead, kRelayedSlots) : pair.ahead;
      pair.slot_size = static_cast<std::uint32_t>(slot);
      pair.block_stride = pair.depth * slot;
      pair.lent = stream.lent;
      pair.marked = cut_.marked;
      if (pair.marked && slot > most_marked_bytes(programs_.size()))
        return failure(Code::invalid_usage, "rank %zu: marked messages of %ju bytes do not fit into their slots", rank,
                       std::uintmax_t{slot});
      reserve(pair);
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
    if (pair.slot_size != slot_size(rank, s) || pair.lent != stream.lent ||
        programs_[pair.sender].slices != programs_[rank].slices)
      return failure(Code::invalid_argument, "ranks %zu and %zu disagree about the messages on port %u", pair.sender, rank,
                     stream.address.port);
    is_received_[found->second] = true;
    places.push_back(found->second);
    return {};
  }

  std::span<const BoundProgram> programs_;
  DeviceCut cut_;
  std::vector<std::uint64_t> flags_;                                    // where those of a rank end
  std::vector<std::uint64_t> staged_flags_;                             // the same in its staging memory
  std::map<std::pair<std::size_t, std::size_t>, std::uint16_t> ports_;  // relayed channels so far, by sender and receiver
  std::vector<DeviceGeometry> geometries_;                              // by rank
  std::vector<std::vector<const BoundStep*>> steps_;                    // by rank and stream
  std::map<Address, std::uint32_t> received_at_;                        // round of slice 0
  std::map<Address, std::size_t> by_address_;                           // in pairs_
  std::vector<bool> is_received_;                                       // by pair
  DeviceChannels joined_;
};

std::uint64_t DeviceChannels::done_flag(std::size_t rank) {
  static_assert(sizeof(kernels::WorkspaceBegin) <= kFlagStride);
  return (1 + rank) * kFlagStride;
}

std::uint64_t DeviceChannels::most_marked_bytes(std::size_t ranks) {
  static_assert(kernels::kMarkedPlace == kFlagArea);
  static_assert((kernels::kMarkedSlots & (kernels::kMarkedSlots - 1)) == 0);  // the kernel takes the low bits of a number
  return marked_slot(ranks) / sizeof(std::uint64_t) * kernels::kDataOfWord;
}

Result<DeviceChannels> DeviceChannels::join(std::span<const BoundProgram> programs, const DeviceCut& cut,
                                            const RelayedPairs& relayed) {
  return Joiner(programs, cut, relayed).run();
}

DeviceEnds DeviceChannels::ends_of(std::size_t rank, std::span<const kernels::Address> workspaces,
                                   kernels::Address staging) const {
  DeviceEnds ends;
  for (const std::vector<std::size_t>& places : places_[rank]) {
    std::vector<ChannelEnd>& of_stream = ends.streams.emplace_back();
    for (const std::size_t place : places) {
      const Pair& pair = pairs_[place];
      ChannelEnd end{0, 0, 0, pair.block_stride, pair.depth, pair.slot_size};
      if (pair.relayed) {
        const Staged& staged = rank == pair.sender ? pair.at_sender : pair.at_receiver;
        end.slots = staging + staged.slots;
        end.posted = staging + staged.posted;
        end.read = staging + staged.read;
      } else if (pair.marked) {
        end.depth = kernels::kMarkedSlots;
        end.slot_size = static_cast<std::uint32_t>(marked_slot(workspaces.size()));
        end.slots = workspaces[pair.receiver] + kernels::kMarkedPlace + pair.sender * end.depth * end.slot_size;
      } else {
        end.slots = workspaces[pair.receiver] + pair.slots;
        end.posted = workspaces[pair.receiver] + pair.posted;
        end.read = workspaces[pair.sender] + pair.read;
      }
      of_stream.push_back(end);
    }
  }
  for (std::size_t peer = 0; peer < workspaces.size(); ++peer)
    if (peer != rank && !relayed_.has(rank, peer))
      ends.peers.push_back({workspaces[rank] + done_flag(peer), workspaces[peer] + done_flag(rank)});
  if (relayed_.any()) ends.peers.push_back({staging + kRelayDone, staging + kKernelDone});
  return ends;
}

std::vector<RelayedChannel> DeviceChannels::relayed_of(std::size_t rank) const {
  std::vector<RelayedChannel> channels;
  for (std::size_t stream = 0; stream < places_[rank].size(); ++stream)
    for (std::size_t end = 0; end < places_[rank][stream].size(); ++end) {
      const Pair& pair = pairs_[places_[rank][stream][end]];
      if (!pair.relayed) continue;
      const bool sends = pair.sender == rank;
      const Staged& staged = sends ? pair.at_sender : pair.at_receiver;
      channels.push_back({sends ? pair.receiver : pair.sender, sends, pair.port, stream, end, staged.slots, staged.posted,
                          staged.read, pair.block_stride, pair.depth, pair.slot_size, pair.ahead});
    }
  return channels;
}

}  // namespace seto
