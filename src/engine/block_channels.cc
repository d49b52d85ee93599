#include "src/engine/block_channels.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace seto {
namespace {

// Sender, then the receiver (or -group of a multicast), then the port: every end derives it alone.
using Address = std::tuple<std::uint32_t, std::int64_t, std::uint16_t>;

Address address_of(const BoundStream& stream) {
  const std::int64_t to = stream.address.group > 0 ? -std::int64_t{stream.address.group} : stream.receivers.front();
  return {stream.address.sender, to, stream.address.port};
}

}  // namespace

Result<BlockChannels> BlockChannels::join(std::span<const BoundProgram> programs, std::uint32_t capacity) {
  BlockChannels joined;
  joined.ends.resize(programs.size());
  std::map<Address, const BoundStream*> senders;
  std::map<Address, BlockChannel*> by_address;
  std::map<Address, std::size_t> missing;  // receivers that have not been found yet
  for (const BoundProgram& program : programs)
    for (const BoundStream& stream : program.streams) {
      if (stream.address.sender != static_cast<std::uint32_t>(program.rank)) continue;
      auto channel = std::make_unique<BlockChannel>();
      channel->sender = program.rank;
      channel->receivers.assign(stream.receivers.begin(), stream.receivers.end());
      channel->slot_size = stream.geometry.slot_size;
      channel->slots.resize(channel->slot_size * capacity);
      channel->flags = std::make_unique<BlockChannel::Flags[]>(stream.receivers.size());
      senders[address_of(stream)] = &stream;
      by_address[address_of(stream)] = channel.get();
      missing[address_of(stream)] = stream.receivers.size();
      joined.channels.push_back(std::move(channel));
    }
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    for (const BoundStream& stream : programs[rank].streams) {
      const auto found = by_address.find(address_of(stream));
      if (found == by_address.end())
        return failure(Code::invalid_argument, "rank %zu receives from rank %u on port %u, where that rank sends nothing", rank,
                       stream.address.sender, stream.address.port);
      const StreamGeometry& sent = senders[found->first]->geometry;
      if (sent.slot_size != stream.geometry.slot_size || sent.slices != stream.geometry.slices)
        return failure(Code::invalid_argument, "ranks %u and %zu disagree about the messages on port %u: %u and %u bytes",
                       stream.address.sender, rank, stream.address.port, sent.slot_size, stream.geometry.slot_size);
      const std::vector<Rank>& receivers = found->second->receivers;
      const auto own = std::find(receivers.begin(), receivers.end(), static_cast<Rank>(rank));
      if (own != receivers.end()) --missing[found->first];
      joined.ends[rank].push_back({found->second, static_cast<std::size_t>(own - receivers.begin())});
    }
  for (const auto& [address, count] : missing)
    if (count > 0)
      return failure(Code::invalid_argument, "rank %u sends on port %u, and %zu of its receivers do not receive there",
                     std::get<0>(address), std::get<2>(address), count);
  return joined;
}

}  // namespace seto
