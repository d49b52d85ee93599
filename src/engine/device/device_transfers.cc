#include "src/engine/device/device_transfers.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace seto {
namespace {

using kernels::Address;
using kernels::kFlagStride;
using kernels::kSliceHeaderSize;
using kernels::TransferCopy;
using kernels::TransferLane;
using kernels::TransferMessage;
using kernels::TransferProgram;
using kernels::TransferState;

constexpr std::uint32_t kFewestSlots = 2, kSmallestSlot = 256;
constexpr std::uint64_t kBytesOfCopy = 16 << 10;  // a block for so many

static_assert(sizeof(TransferState) <= kFlagStride && sizeof(kernels::SliceHeader) <= kSliceHeaderSize);

bool sends(const LocalTransfer& pair) { return pair.direction == LocalTransfer::Direction::send; }

// The place of the table in the program.
template <class T>
std::uint32_t append(std::vector<std::byte>& bytes, std::span<const T> table) {
  const std::size_t place =
      (bytes.size() + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
  bytes.resize(place + table.size_bytes());
  if (!table.empty()) std::memcpy(&bytes[place], table.data(), table.size_bytes());
  return static_cast<std::uint32_t>(place);
}

}  // namespace

// Slots lose their depth first, and channels before their slices get short: with few slots each slice waits for the one before,
// and a channel is what a further block works on.
Result<TransferArea> TransferArea::of(std::size_t ranks, std::uint64_t begin) {
  TransferArea area(ranks, begin);
  const std::size_t peers = std::max<std::size_t>(ranks, 2) - 1;
  while (area.flags_size() + peers * area.channels_ * area.slots_size() > kSize) {
    if (area.depth_ > kFewestSlots)
      --area.depth_;
    else if (area.channels_ > 1 && std::uint64_t{area.channels_} * 4096 > area.slot_content_)
      area.channels_ /= 2;
    else if (area.slot_content_ > kSmallestSlot)
      area.slot_content_ /= 2;
    else
      return failure(Code::invalid_usage, "%zu ranks are too many for sends and receives on device memory", ranks);
  }
  return area;
}

std::uint64_t TransferArea::slots_size() const {
  return std::uint64_t{depth_} * (std::uint64_t{slot_content_} + kSliceHeaderSize);
}

std::uint64_t TransferArea::flags_size() const {
  const std::uint64_t flags = 4 * (ranks_ - 1) * channels_ * kFlagStride;
  return (flags + kAlignment - 1) / kAlignment * kAlignment;
}

std::uint64_t TransferArea::index(std::size_t rank, std::size_t peer, std::uint32_t channel) const {
  return (peer < rank ? peer : peer - 1) * channels_ + channel;
}

std::uint64_t TransferArea::place(Flag flag, std::size_t rank, std::size_t peer, std::uint32_t channel) const {
  const std::uint64_t of_kind = (ranks_ - 1) * channels_;
  return begin_ + (static_cast<std::uint64_t>(flag) * of_kind + index(rank, peer, channel)) * kFlagStride;
}

std::uint64_t TransferArea::slots(std::size_t rank, std::size_t peer, std::uint32_t channel) const {
  return begin_ + flags_size() + index(rank, peer, channel) * slots_size();
}

std::uint32_t TransferArea::report(LocalTransfer pair, std::uint32_t channel) const {
  const auto peer = static_cast<std::uint32_t>(pair.peer);
  return (2 * peer + (sends(pair) ? 0 : 1)) * channels_ + channel;
}

LocalTransfer TransferArea::pair_of(std::uint32_t report) const {
  const std::uint32_t pair = report / channels_;
  return {pair % 2 == 0 ? LocalTransfer::Direction::send : LocalTransfer::Direction::receive, static_cast<Rank>(pair / 2)};
}

TransferLane TransferArea::lane(std::size_t rank, LocalTransfer pair, std::uint32_t channel,
                                std::span<const Address> workspaces) const {
  const auto peer = static_cast<std::size_t>(pair.peer);
  const std::size_t sender = sends(pair) ? rank : peer;
  const std::size_t receiver = sends(pair) ? peer : rank;
  TransferLane lane;
  lane.slots = workspaces[receiver] + slots(receiver, sender, channel);
  lane.posted = workspaces[receiver] + place(Flag::posted, receiver, sender, channel);
  lane.read = workspaces[sender] + place(Flag::read, sender, receiver, channel);
  lane.state = workspaces[rank] + place(sends(pair) ? Flag::state_out : Flag::state_in, rank, peer, channel);
  lane.channel = channel;
  lane.report = report(pair, channel);
  lane.sends = sends(pair) ? 1 : 0;
  return lane;
}

// Messages that this rank sends have the first half of the memory.
TransferArea::StagedChannel TransferArea::staged(std::size_t rank, LocalTransfer pair, std::uint32_t channel) const {
  const auto peer = static_cast<std::size_t>(pair.peer);
  const std::uint64_t half = sends(pair) ? 0 : kSize;
  return {half + slots(rank, peer, channel) - begin_, half + place(Flag::posted, rank, peer, channel) - begin_,
          half + place(Flag::read, rank, peer, channel) - begin_};
}

TransferLane TransferArea::staged_lane(std::size_t rank, LocalTransfer pair, std::uint32_t channel, Address workspace,
                                       Address staging) const {
  const StagedChannel places = staged(rank, pair, channel);
  TransferLane lane;
  lane.slots = staging + places.slots;
  lane.posted = staging + places.posted;
  lane.read = staging + places.read;
  lane.state =
      workspace + place(sends(pair) ? Flag::state_out : Flag::state_in, rank, static_cast<std::size_t>(pair.peer), channel);
  lane.channel = channel;
  lane.report = report(pair, channel);
  lane.sends = sends(pair) ? 1 : 0;
  return lane;
}

std::vector<std::byte> transfer_program(const TransferArea& area, std::size_t rank, std::span<const Address> workspaces,
                                        const DeviceTransfers& transfers) {
  std::map<std::pair<Rank, bool>, std::vector<TransferMessage>> by_pair;
  for (const DeviceTransfer& one : transfers.messages) by_pair[{one.pair.peer, sends(one.pair)}].push_back(one.message);
  std::vector<TransferMessage> messages;
  std::vector<TransferLane> lanes;
  for (const auto& [pair, of_pair] : by_pair) {
    std::uint64_t largest = 0;
    for (const TransferMessage& message : of_pair) largest = std::max(largest, message.size);
    const std::uint64_t slices = std::max<std::uint64_t>(1, (largest + area.slot_content() - 1) / area.slot_content());
    const LocalTransfer local{pair.second ? LocalTransfer::Direction::send : LocalTransfer::Direction::receive, pair.first};
    for (std::uint32_t channel = 0; channel < std::min<std::uint64_t>(slices, area.channels()); ++channel) {
      const bool is_relayed = transfers.relayed != nullptr && transfers.relayed->has(rank, static_cast<std::size_t>(local.peer));
      TransferLane& lane =
          lanes.emplace_back(is_relayed ? area.staged_lane(rank, local, channel, workspaces[rank], transfers.staging)
                                        : area.lane(rank, local, channel, workspaces));
      lane.first_message = static_cast<std::uint32_t>(messages.size());
      lane.message_count = static_cast<std::uint32_t>(of_pair.size());
    }
    messages.insert(messages.end(), of_pair.begin(), of_pair.end());
  }
  // Lanes are dealt to the blocks in turn: all first channels have blocks of their own before a second one gets any.
  std::stable_sort(lanes.begin(), lanes.end(), [](const auto& left, const auto& right) { return left.channel < right.channel; });
  std::uint64_t copied = 0;
  for (const TransferCopy& copy : transfers.copies) copied = std::max(copied, copy.size);
  TransferProgram begin;
  begin.blocks = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::max<std::uint64_t>(lanes.size(), copied / kBytesOfCopy), 1, transfers.most_blocks));
  begin.lane_count = static_cast<std::uint32_t>(lanes.size());
  begin.copy_count = static_cast<std::uint32_t>(transfers.copies.size());
  begin.channels = area.channels();
  begin.depth = area.depth();
  begin.slot_content = area.slot_content();
  std::vector<std::byte> bytes(sizeof begin);
  begin.lanes = append<TransferLane>(bytes, lanes);
  begin.messages = append<TransferMessage>(bytes, messages);
  begin.copies = append<TransferCopy>(bytes, transfers.copies);
  std::memcpy(bytes.data(), &begin, sizeof begin);
  return bytes;
}

}  // namespace seto
