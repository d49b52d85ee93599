#include "src/engine/relay/relay_channels.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace seto {

using kernels::kFlagStride;

std::uint64_t load_flag(const std::byte* staging, std::uint64_t place) {
  auto* const flag = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(staging) + place);
  return std::atomic_ref(*flag).load(std::memory_order_acquire);
}

void store_flag(std::byte* staging, std::uint64_t place, std::uint64_t value) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(staging + place)).store(value, std::memory_order_release);
}

Result<std::shared_ptr<RelayChannels>> RelayChannels::open(RelayProgram program, std::uint32_t digest, std::uint64_t window_bytes,
                                                           PeerGroup& peer_group) {
  std::shared_ptr<RelayChannels> made(new RelayChannels(std::move(program)));
  SETO_TRY(made->open(digest, window_bytes, peer_group));
  return made;
}

Status RelayChannels::open(std::uint32_t digest, std::uint64_t window_bytes, PeerGroup& peer_group) {
  const auto own = static_cast<std::uint32_t>(program_.rank);
  for (const RelayProgram::Channel& bound : program_.channels) {
    Channel channel;
    channel.bound = &bound;
    StreamGeometry geometry;
    geometry.slot_size = static_cast<std::uint32_t>(std::max<std::size_t>(1, program_.size_of(bound, 0)));
    geometry.depth = bound.end.ahead;
    geometry.slices = program_.slices;
    geometry.digest = digest;
    geometry.window = window_bytes;
    const auto peer = static_cast<std::uint32_t>(bound.end.peer);
    if (bound.end.sends) {
      SETO_ASSIGN(channel.send, peer_group.open_send({own, 0, bound.end.port}, {&peer, 1}, geometry));
    } else {
      SETO_ASSIGN(channel.receive, peer_group.open_receive({peer, 0, bound.end.port}, geometry));
      channel.sized = channel.receive->sized();
      channel.borrowing = channel.receive->borrowing();
    }
    channels_.push_back(std::move(channel));
  }
  return {};
}

void RelayChannels::close() {
  channels_.clear();
  left_ = 0;
}

void RelayChannels::start(const Operation& operation) {
  operation_ = operation;
  left_ = channels_.size() * program_.slices;
  for (Channel& channel : channels_) channel.moved = 0;
}

std::uint32_t RelayChannels::advance(std::byte* staging, std::uint32_t most) {
  std::uint32_t moved = 0;
  for (bool goes_on = left_ > 0; goes_on && moved < most;) {
    goes_on = false;
    for (Channel& channel : channels_) {
      if (moved == most || channel.moved == program_.slices || !move(channel, staging)) continue;
      ++channel.moved;
      ++moved;
      --left_;
      goes_on = true;
    }
  }
  return moved;
}

bool RelayChannels::move(Channel& channel, std::byte* staging) const {
  return channel.send != nullptr ? send(channel, staging) : receive(channel, staging);
}

bool RelayChannels::send(const Channel& channel, std::byte* staging) const {
  const RelayedChannel& end = channel.bound->end;
  if (!reach(staging, end.posted, channel.moved + 1)) return false;
  const Mark mark = mark_of(operation_.number, channel.moved);
  std::byte* const message = channel.send->acquire(mark);
  if (message == nullptr) return false;
  program_.gather(*channel.bound, channel.moved, staging, message);
  channel.send->commit(mark, program_.size_of(*channel.bound, channel.moved));
  tell(staging, end.read, channel.moved + 1);
  return true;
}

bool RelayChannels::receive(const Channel& channel, std::byte* staging) const {
  const RelayedChannel& end = channel.bound->end;
  if (channel.moved >= end.depth && !reach(staging, end.read, channel.moved + 1 - end.depth)) return false;
  const Mark mark = mark_of(operation_.number, channel.moved);
  const std::byte* const message = channel.receive->front(mark);
  if (message == nullptr) return false;
  if (channel.sized != nullptr && !channel.sized->has_size(mark, program_.size_of(*channel.bound, channel.moved))) return false;
  if (channel.borrowing != nullptr && !channel.borrowing->hold(mark)) return false;
  program_.scatter(*channel.bound, channel.moved, message, staging);
  channel.receive->release(mark);
  tell(staging, end.posted, channel.moved + 1);
  return true;
}

bool RelayChannels::reach(std::byte* staging, std::uint64_t flags, std::uint64_t slices) const {
  const kernels::Mark mark = kernels::mark_of(operation_.of_kernel, slices);
  for (std::uint32_t block = 0; block < program_.blocks; ++block)
    if (load_flag(staging, flags + block * kFlagStride) < mark) return false;
  return true;
}

void RelayChannels::tell(std::byte* staging, std::uint64_t flags, std::uint64_t slices) const {
  const kernels::Mark mark = kernels::mark_of(operation_.of_kernel, slices);
  for (std::uint32_t block = 0; block < program_.blocks; ++block) store_flag(staging, flags + block * kFlagStride, mark);
}

std::string RelayChannels::waits_for(std::byte* staging) const {
  for (const Channel& channel : channels_) {
    if (channel.moved == program_.slices) continue;
    const RelayedChannel& end = channel.bound->end;
    const std::string slice = "slice " + std::to_string(channel.moved + 1) + " of " + std::to_string(program_.slices);
    if (channel.receive != nullptr) return "waits for " + slice + " from rank " + std::to_string(end.peer);
    if (reach(staging, end.posted, channel.moved + 1))
      return "waits for rank " + std::to_string(end.peer) + " to take messages before it sends " + slice;
  }
  return {};
}

}  // namespace seto
