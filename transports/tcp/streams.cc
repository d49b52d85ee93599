#include "transports/tcp/streams.h"

#include <algorithm>
#include <cstdio>

namespace seto::tcp {
namespace {

constexpr std::size_t kSlotAlignment = 64;

std::size_t padded(std::size_t size) {
  return std::max(kSlotAlignment, (size + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment);
}

}  // namespace

// ---- sender ----

TcpSender::TcpSender(TcpCircle& circle, StreamAddress address, std::span<const std::uint32_t> receivers,
                     const StreamGeometry& geometry)
    : circle_(circle),
      address_(address),
      receivers_(receivers.begin(), receivers.end()),
      geometry_(geometry),
      ahead_(slices_ahead(geometry)),
      operations_(operations_ahead(geometry)),
      stride_(padded(geometry.slot_size)) {
  geometry_.depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(1U, geometry.depth), geometry.slices));
  slots_ = std::make_shared<Slots>(2 * std::size_t{geometry_.depth});
  const std::lock_guard lock(circle_.setup_.domain->lock());
  for (const std::uint32_t receiver : receivers_)
    taken_.push_back(&circle_.peers_[receiver].taken[TcpCircle::key_of(address.port, address.group)]);
}

// Frames of a receiver say how far it is. One that only listens is asked in time; one that this member has not talked to for some
// operations may be far ahead of what is known of it, and in nobody's call: its bulletin tells.
bool TcpSender::open(Operation& operation, std::uint64_t number) {
  bool asks = false;
  for (const std::uint32_t receiver : receivers_) {
    if (circle_.link(receiver)->broken()) continue;  // takes nothing, and is found out elsewhere
    const std::uint64_t done = circle_.done_by(receiver);
    if (done + operations_ < number) {
      circle_.setup_.herald->ask(receiver);
      return false;
    }
    asks = asks || done + std::max<std::uint64_t>(1, operations_ / 2) < number;
  }
  operation = Operation{};
  operation.number = number;
  operation.asks = asks;
  operation.size = geometry_.slot_size;
  return true;
}

bool TcpSender::has_credit(Mark mark) {
  if (slice_of(mark) < ahead_) return true;
  const Mark needed = mark - ahead_ + 1;
  for (std::size_t i = 0; i < receivers_.size(); ++i)
    if ((*taken_[i])[operation_of(mark) % kMostOperations] < needed && !circle_.link(receivers_[i])->broken()) return false;
  return true;
}

std::size_t TcpSender::slot_of(Mark mark) const {
  return operation_of(mark) % 2 * geometry_.depth + slice_of(mark) % geometry_.depth;
}

std::byte* TcpSender::acquire(Mark mark) {
  Operation& operation = under_way_[operation_of(mark) % 2];
  if (operation.number != operation_of(mark) && !open(operation, operation_of(mark))) return nullptr;
  if (!has_credit(mark) || slots_->unwritten[slot_of(mark)].load(std::memory_order_acquire) > 0) return nullptr;
  if (slots_->memory == nullptr)
    slots_->memory = std::make_unique_for_overwrite<std::byte[]>(2 * geometry_.depth * stride_ + kSlotAlignment);
  auto* const memory = slots_->memory.get();
  auto* const aligned = memory + (kSlotAlignment - reinterpret_cast<std::uintptr_t>(memory) % kSlotAlignment);
  return aligned + slot_of(mark) * stride_;
}

void TcpSender::tell_size(Mark mark, std::size_t size) { under_way_[operation_of(mark) % 2].size = size; }

bool TcpSender::lend(Mark mark, const std::byte* first, std::size_t stride) {
  Operation& operation = under_way_[operation_of(mark) % 2];
  if (operation.number != operation_of(mark) && !open(operation, operation_of(mark))) return false;
  operation.lent = first;
  operation.stride = stride;
  return has_credit(mark);
}

void TcpSender::commit(Mark mark) {
  const Operation& operation = under_way_[operation_of(mark) % 2];
  if (operation.lent != nullptr)
    send(operation, mark, operation.lent + slice_of(mark) * operation.stride, &slots_->lent[operation.number % 2]);
  else
    send(operation, mark, acquire(mark), &slots_->unwritten[slot_of(mark)]);
}

void TcpSender::send(const Operation& operation, Mark mark, const std::byte* message, Unwritten* unwritten) {
  Frame frame = circle_.frame_of(FrameKind::data);
  frame.mark = mark;
  frame.size = static_cast<std::uint32_t>(operation.size);
  frame.digest = geometry_.digest;
  frame.port = address_.port;
  frame.group = address_.group;
  const std::lock_guard lock(circle_.setup_.domain->lock());
  for (const std::uint32_t receiver : receivers_) {
    Link& link = *circle_.link(receiver);
    std::size_t offset = 0;
    do {
      frame.offset = static_cast<std::uint32_t>(offset);
      frame.flags = operation.asks && slice_of(mark) == 0 && offset == 0 ? kTellProgress : 0;
      frame.length = static_cast<std::uint32_t>(std::min(kFrameLimit, operation.size - offset));
      link.queue({frame, message + offset, slots_, unwritten});
      offset += frame.length;
    } while (offset < operation.size);
    circle_.push_out(link);
  }
}

bool TcpSender::taken(std::uint64_t operation) { return slots_->lent[operation % 2].load(std::memory_order_acquire) == 0; }

bool TcpSender::revoke(std::uint64_t operation) {
  const std::lock_guard lock(circle_.setup_.domain->lock());
  const Unwritten& lent = slots_->lent[operation % 2];
  for (const std::uint32_t receiver : receivers_) circle_.link(receiver)->recall(&lent);
  return true;
}

// ---- receiver ----

TcpReceiver::TcpReceiver(TcpCircle& circle, StreamAddress address, const StreamGeometry& geometry)
    : circle_(circle), address_(address), geometry_(geometry), ahead_(slices_ahead(geometry)), stream_([&]() -> InStream& {
        const std::lock_guard lock(circle.setup_.domain->lock());
        return circle.stream_of(address.sender, TcpCircle::key_of(address.port, address.group));
      }()) {}

// What a broken link brought was read to the end before it broke.
const std::byte* TcpReceiver::front(Mark mark) {
  const bool over = circle_.link(address_.sender)->broken();
  const InStream::Message* const message = stream_.whole(mark);
  if (message == nullptr) {
    if (over) circle_.miss(address_.sender, operation_of(mark));
    return nullptr;
  }
  if (message->digest == geometry_.digest && message->size <= geometry_.slot_size) return message->data;
  std::array<char, 64> digests{};
  (void)std::snprintf(digests.data(), digests.size(), "digest %08x where digest %08x was due", message->digest, geometry_.digest);
  disagree(mark, digests.data());
  return nullptr;
}

bool TcpReceiver::brings(Mark mark, std::size_t size) {
  const InStream::Message* const message = stream_.whole(mark);
  if (message != nullptr && message->size == size) return true;
  if (message != nullptr) disagree(mark, std::to_string(message->size) + " bytes where " + std::to_string(size) + " were due");
  return false;
}

void TcpReceiver::disagree(Mark mark, const std::string& what) {
  circle_.disagree(address_.sender, operation_of(mark),
                   failure(Code::remote_error, "%s %u sent operation %llu with %s", circle_.setup_.called, address_.sender,
                           static_cast<unsigned long long>(operation_of(mark)), what.c_str()));
}

void TcpReceiver::displace(std::uint64_t operation) {
  const std::lock_guard lock(circle_.setup_.domain->lock());
  const Placement over = stream_.displace(operation);
  if (over.size > 0) circle_.link(address_.sender)->turn_away(over.first, over.size);
}

// Its sender hears of it if it may have to wait for it, in steps of half of what it may be ahead.
void TcpReceiver::release(Mark mark) {
  const std::lock_guard lock(circle_.setup_.domain->lock());
  stream_.drop(mark);
  --circle_.peers_[address_.sender].unread[operation_of(mark) % kMostOperations];
  const std::uint64_t taken = slice_of(mark) + 1;
  const std::uint64_t step = std::max<std::uint64_t>(1, ahead_ / 2);
  if (geometry_.slices <= ahead_ || taken % step != 0 || taken >= geometry_.slices) return;
  Frame frame = circle_.frame_of(FrameKind::credit);
  frame.mark = mark + 1;
  frame.port = address_.port;
  frame.group = address_.group;
  Link& link = *circle_.link(address_.sender);
  link.queue_urgent(frame);
  circle_.push_out(link);
}

}  // namespace seto::tcp
