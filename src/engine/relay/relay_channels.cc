#include "src/engine/relay/relay_channels.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/base/clock.h"

namespace seto {

using kernels::kFlagStride;

namespace {

// A peer whose program reads acknowledges a message within a round trip. For one that does not, the message is copied to the
// host, as the call shall not wait for the peer's program.
constexpr std::uint64_t kPatienceNs = 1'000'000;

}  // namespace

std::uint64_t load_flag(const std::byte* staging, std::uint64_t place) {
  auto* const flag = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(staging) + place);
  return std::atomic_ref(*flag).load(std::memory_order_acquire);
}

void store_flag(std::byte* staging, std::uint64_t place, std::uint64_t value) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(staging + place)).store(value, std::memory_order_release);
}

Result<std::shared_ptr<RelayChannels>> RelayChannels::open(RelayProgram program, std::uint32_t digest, std::uint64_t window_bytes,
                                                           PeerGroup& peer_group, GpuSlots* slots) {
  std::shared_ptr<RelayChannels> made(new RelayChannels(std::move(program), slots));
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
      if (slots_ != nullptr) channel.from_gpu = channel.send->from_gpu();
      for (std::uint32_t slot = 0; bound.in_gpu && slot < bound.end.depth; ++slot) {
        channel.on_gpu.push_back(std::make_unique<GpuSlot>());
        channel.on_gpu.back()->copy = std::make_shared<SlotCopy>(*slots_);
      }
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
  for (Channel& channel : channels_) channel.moved = channel.freed = 0;
}

std::uint32_t RelayChannels::advance(std::byte* staging, std::uint32_t most) {
  std::uint32_t moved = 0;
  for (bool goes_on = left_ > 0; goes_on && moved < most;) {
    goes_on = false;
    for (Channel& channel : channels_) {
      const bool on_gpu = !channel.on_gpu.empty();
      if (on_gpu && free_slot(channel, staging)) {
        --left_;
        ++moved;
        goes_on = true;
      }
      if (moved >= most || channel.moved == program_.slices || !move(channel, staging)) continue;
      ++channel.moved;
      ++moved;
      if (!on_gpu) --left_;
      goes_on = true;
    }
  }
  return moved;
}

bool RelayChannels::move(Channel& channel, std::byte* staging) {
  if (!channel.on_gpu.empty()) return send_from_gpu(channel, staging);
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

// The kernel fills a slot again when nothing needs its bytes: the peer has acknowledged them, or they are on the host.
bool RelayChannels::free_slot(Channel& channel, std::byte* staging) {
  if (channel.freed == channel.moved) return false;
  const Mark mark = mark_of(operation_.number, channel.freed);
  GpuSlot& slot = *channel.on_gpu[channel.freed % channel.on_gpu.size()];
  if (slot.is_lent && !channel.from_gpu->is_free(mark)) {
    if (monotonic_ns() - slot.since_ns < kPatienceNs || !channel.from_gpu->give_back(mark)) {
      if (why_.ok()) why_ = slot.copy->why();
      return false;
    }
  }
  if (slot.copy->is_under_way()) {
    if (why_.ok()) why_ = slot.copy->why();
    return false;
  }
  slot.is_begun = slot.is_lent = false;
  tell(staging, channel.bound->end.read, ++channel.freed);
  return true;
}

// The way is chosen for each message: rails come and go.
bool RelayChannels::send_from_gpu(Channel& channel, std::byte* staging) {
  const RelayedChannel& end = channel.bound->end;
  GpuSlot& slot = *channel.on_gpu[channel.moved % channel.on_gpu.size()];
  if (channel.moved - channel.freed == channel.on_gpu.size() || !reach(staging, end.posted, channel.moved + 1)) return false;
  if (!slot.is_begun) {
    program_.find_parts(*channel.bound, channel.moved, parts_);
    slot.copy->begin(parts_);
    slot.is_begun = true;
  }
  const Mark mark = mark_of(operation_.number, channel.moved);
  const bool is_empty = slot.copy->parts().empty();
  if (!is_empty && channel.from_gpu != nullptr && channel.from_gpu->reads(slots_->memory(), slots_->size())) {
    sent_.clear();
    for (const SlotCopy::Part& part : slot.copy->parts()) sent_.push_back({slots_->memory() + part.place, part.size});
    slot.since_ns = monotonic_ns();
    return slot.is_lent = channel.from_gpu->send_parts(mark, sent_, slot.copy);
  }
  if (!is_empty) {
    const Result<const std::byte*> brought = slot.copy->bring(slots_->memory() + slot.copy->parts().front().place);
    if (!brought.ok()) why_ = brought.status();
    if (!brought.ok() || brought.value() == nullptr) return false;
  }
  std::byte* const message = channel.send->acquire(mark);
  if (message == nullptr) return false;
  program_.gather(*channel.bound, channel.moved, slots_->host(), message);
  channel.send->commit(mark, program_.size_of(*channel.bound, channel.moved));
  return true;
}

bool RelayChannels::take_back() {
  bool all = true;
  for (Channel& channel : channels_)
    for (std::uint64_t slice = channel.freed; slice < std::min(channel.freed + channel.on_gpu.size(), program_.slices); ++slice) {
      GpuSlot& slot = *channel.on_gpu[slice % channel.on_gpu.size()];
      if (slot.is_lent && !channel.from_gpu->take_back(mark_of(operation_.number, slice))) all = false;
      if (slot.copy->is_under_way() && slot.copy->why().ok()) all = false;
    }
  return all;
}

void RelayChannels::find_readers(std::vector<bool>& readers) const {
  for (const Channel& channel : channels_)
    if (channel.from_gpu != nullptr) readers[channel.bound->end.peer] = channel.from_gpu->reads(slots_->memory(), slots_->size());
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
    const RelayedChannel& end = channel.bound->end;
    if (!channel.on_gpu.empty() && channel.freed < channel.moved)
      return "waits until slice " + std::to_string(channel.freed + 1) + " of " + std::to_string(program_.slices) +
             " has left memory of the GPU for rank " + std::to_string(end.peer);
    if (channel.moved == program_.slices) continue;
    const std::string slice = "slice " + std::to_string(channel.moved + 1) + " of " + std::to_string(program_.slices);
    if (channel.receive != nullptr) return "waits for " + slice + " from rank " + std::to_string(end.peer);
    if (reach(staging, end.posted, channel.moved + 1))
      return "waits for rank " + std::to_string(end.peer) + " to take messages before it sends " + slice;
  }
  return {};
}

}  // namespace seto
