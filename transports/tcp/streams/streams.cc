#include "transports/tcp/streams/streams.h"

#include <algorithm>
#include <cstdio>

#include "transports/gpu_buffer.h"

namespace seto::tcp {
namespace {

// Bytes of slots that a far link needs for each operation, so that the kernel always finds more to send: what is on its way needs
// no slot. Two slots of 256 KiB kept two of eight sockets busy (100 MB in place over 60 ms and 1 Gbit/s: 1.6 s, with more
// slots 1.1 s).
constexpr std::uint64_t kFarSlots = std::uint64_t{4} << 20;
// Credit of a stream is returned in so many parts of its window.
constexpr std::uint64_t kNearStreamParts = 2;
constexpr std::uint64_t kFarStreamParts = 8;
// The destination of fewer bytes is not told to the sender: most of them have left it before it could know.
constexpr std::uint64_t kWorthTelling = std::uint64_t{128} << 10;

}  // namespace

// ---- sender ----

TcpSender::TcpSender(TcpPeerGroup& peer_group, StreamAddress address, std::span<const std::uint32_t> receivers,
                     const StreamGeometry& geometry)
    : peer_group_(peer_group),
      address_(address),
      receivers_(receivers.begin(), receivers.end()),
      geometry_(geometry),
      initial_credit_(slices_ahead(geometry, kStreamCredit)),
      operations_(operations_ahead(geometry)),
      asked_(receivers.size()) {
  std::uint64_t depth = std::max(1U, geometry.depth);
  const bool far =
      std::any_of(receivers_.begin(), receivers_.end(), [&](std::uint32_t one) { return peer_group_.link(one)->far(); });
  if (far) depth = std::max(depth, std::min(kMostAhead, kFarSlots / std::max(1U, geometry.slot_size)));
  geometry_.depth = static_cast<std::uint32_t>(std::min(depth, geometry.slices));
  slots_.resize(kWindow * std::size_t{geometry_.depth});
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  for (const std::uint32_t receiver : receivers_)
    credit_.push_back(&peer_group_.peers_[receiver].credit[TcpPeerGroup::key_of(address.port, address.group)]);
}

// Frames of a receiver carry the number of operations it has completed. A receiver that sends no data is asked in time to report
// it. If no frames were exchanged for some operations the known number may be too low: then it is asked now.
bool TcpSender::open(Operation& operation, std::uint64_t number) {
  bool asks = false;
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    const std::uint32_t receiver = receivers_[i];
    if (peer_group_.link(receiver)->broken()) continue;  // takes no data; the failure is found elsewhere
    const std::uint64_t done = peer_group_.done_by(receiver);
    if (done + operations_ < number) {
      peer_group_.await_progress(receiver, number - operations_, asked_[i]);
      return false;
    }
    asks = asks || done + std::max<std::uint64_t>(1, operations_ / 2) < number;
  }
  operation = Operation{};
  operation.number = number;
  operation.asks = asks;
  return true;
}

bool TcpSender::has_credit(Mark mark) {
  if (slice_of(mark) < initial_credit_) return true;
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    if (credit_[i]->operations[operation_of(mark) % kMostOperations].limit > mark) continue;
    if (slice_of(mark) < slices_ahead(geometry_, credit_[i]->window)) continue;
    if (!peer_group_.link(receivers_[i])->broken()) return false;
  }
  return true;
}

std::size_t TcpSender::slot_of(Mark mark) const {
  return operation_of(mark) % kWindow * geometry_.depth + slice_of(mark) % geometry_.depth;
}

// Links acknowledge about in the order in which blocks were sent, so the first of them is free first.
TcpSender::Block* TcpSender::block_of(std::size_t slot) {
  std::shared_ptr<Block>& block = slots_[slot];
  if (!is_written(slot)) return nullptr;
  if (block != nullptr && !block->lender.needed()) return block.get();
  if (block != nullptr) kept_.push_back(std::move(block));
  while (kept_.size() > slots_.size() && !kept_.front()->lender.needed()) kept_.pop_front();  // of a window that was longer
  if (!kept_.empty() && !kept_.front()->lender.needed()) {
    block = std::move(kept_.front());
    kept_.pop_front();
  } else {
    block = make_block();
  }
  return block.get();
}

std::shared_ptr<TcpSender::Block> TcpSender::make_block() const {
  auto block = std::make_shared<Block>(geometry_.slot_size);
  const auto has_rails = [this](std::uint32_t receiver) { return peer_group_.link(receiver)->rails() > 0; };
  if (geometry_.slot_size >= BytePipe::kLongPart && std::any_of(receivers_.begin(), receivers_.end(), has_rails))
    block->name.emplace(block->memory, geometry_.slot_size);
  return block;
}

std::byte* TcpSender::acquire(Mark mark) {
  Operation& operation = under_way_[operation_of(mark) % kWindow];
  if (operation.number != operation_of(mark) && !open(operation, operation_of(mark))) return nullptr;
  if (!has_credit(mark)) return nullptr;
  Block* const block = block_of(slot_of(mark));
  return block == nullptr ? nullptr : block->memory;
}

bool TcpSender::lend(Mark mark, const std::byte* first, std::size_t stride) {
  Operation& operation = under_way_[operation_of(mark) % kWindow];
  if (operation.number != operation_of(mark) && !open(operation, operation_of(mark))) return false;
  operation.lent = first;
  operation.stride = stride;
  return has_credit(mark);
}

void TcpSender::commit(Mark mark, std::size_t size) {
  Operation& operation = under_way_[operation_of(mark) % kWindow];
  operation.committed = slice_of(mark) + 1;
  if (operation.lent != nullptr) {
    Lent& lent = lent_->at(operation.number % kWindow);
    const Part whole{operation.lent + slice_of(mark) * operation.stride, size};
    return queue(operation, mark, {{&whole, 1}, {lent_, &lent.lender}, &lent.unwritten});
  }
  const std::shared_ptr<Block>& block = slots_[slot_of(mark)];
  const Part whole{block->memory, size};
  queue(operation, mark, {{&whole, 1}, {block, &block->lender}, &block->unwritten});
}

void TcpSender::queue(const Operation& operation, Mark mark, const Message& message) {
  Frame frame = peer_group_.frame_of(FrameKind::data);
  std::size_t size = 0;
  for (const Part& part : message.parts) size += part.size;
  // Memory of a GPU has few slots, and to copy one costs more than an acknowledgement.
  const bool is_of_gpu = message.lender->host_copy() != nullptr;
  frame.mark = mark;
  frame.size = static_cast<std::uint32_t>(size);
  frame.digest = geometry_.digest;
  frame.port = address_.port;
  frame.group = address_.group;
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  for (const std::uint32_t receiver : receivers_) {
    Link& link = *peer_group_.link(receiver);
    std::size_t offset = 0;
    for (const Part& part : message.parts) {
      std::size_t in_part = 0;
      do {
        frame.offset = static_cast<std::uint32_t>(offset);
        frame.flags = operation.asks && slice_of(mark) == 0 && offset == 0 ? kTellProgress : 0;
        frame.length = static_cast<std::uint32_t>(std::min(link.frame_size(), part.size - in_part));
        if (is_of_gpu && offset + frame.length == size) frame.flags |= kTellHeard;
        link.queue({frame, part.data + in_part, message.lender, message.unwritten});
        in_part += frame.length;
        offset += frame.length;
      } while (in_part < part.size);
    }
    peer_group_.push_out(link);
  }
}

bool TcpSender::reads(const std::byte* memory, std::size_t size) {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  return std::all_of(receivers_.begin(), receivers_.end(),
                     [&](std::uint32_t receiver) { return peer_group_.link(receiver)->rails_read(memory, size); });
}

bool TcpSender::send_parts(Mark mark, std::span<const Part> parts, const std::shared_ptr<HostCopy>& host) {
  Operation& operation = under_way_[operation_of(mark) % kWindow];
  if (operation.number != operation_of(mark) && !open(operation, operation_of(mark))) return false;
  if (!has_credit(mark) || !is_written(slot_of(mark))) return false;
  on_gpu_.resize(slots_.size());
  std::shared_ptr<OnGpu>& message = on_gpu_[slot_of(mark)];
  if (message != nullptr && message->lender.needed()) return false;
  if (message == nullptr || message->host != host) message = std::make_shared<OnGpu>(host);
  operation.committed = slice_of(mark) + 1;
  queue(operation, mark, {parts, {message, &message->lender}, &message->unwritten});
  return true;
}

bool TcpSender::is_free(Mark mark) const {
  const OnGpu* const message = on_gpu_[slot_of(mark)].get();
  return message == nullptr || (message->unwritten.load(std::memory_order_acquire) == 0 && !message->lender.needed());
}

bool TcpSender::give_back(Mark mark) {
  if (is_free(mark)) return true;
  const OnGpu& message = *on_gpu_[slot_of(mark)];
  if (message.unwritten.load(std::memory_order_acquire) != 0) return false;
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  bool all = true;
  for (const std::uint32_t receiver : receivers_) all = peer_group_.link(receiver)->give_back(message.lender) && all;
  return all;
}

bool TcpSender::take_back(Mark mark) {
  if (is_free(mark)) return true;
  const OnGpu& message = *on_gpu_[slot_of(mark)];
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  Operation& operation = under_way_[operation_of(mark) % kWindow];
  if (operation.number == operation_of(mark)) operation.revoked = true;
  bool all = true;
  for (const std::uint32_t receiver : receivers_)
    all = peer_group_.link(receiver)->recall(&message.unwritten, message.lender) && all;
  return all;
}

// The payloads that a link keeps are copied: the caller does not wait for acknowledgements.
bool TcpSender::taken(std::uint64_t operation) {
  if (!lent_is_written(operation)) return false;
  const resume::Lender& lender = lent_->at(operation % kWindow).lender;
  if (!lender.needed()) return true;
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  bool all = true;
  for (const std::uint32_t receiver : receivers_) all = peer_group_.link(receiver)->give_back(lender) && all;
  return all;
}

bool TcpSender::revoke(std::uint64_t operation) {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  if (under_way_[operation % kWindow].number == operation) under_way_[operation % kWindow].revoked = true;
  const Lent& lent = lent_->at(operation % kWindow);
  bool all = true;
  for (const std::uint32_t receiver : receivers_) all = peer_group_.link(receiver)->recall(&lent.unwritten, lent.lender) && all;
  return all;
}

std::uint64_t TcpSender::handed_over(std::uint64_t number) const {
  const Operation& operation = under_way_[number % kWindow];
  if (operation.number != number) return operation.number > number ? geometry_.slices : 0;
  std::uint64_t slices = operation.handed_over;
  if (operation.lent != nullptr) {
    if (lent_is_written(number)) slices = operation.committed;
  } else {
    // A slot is reused only after its frames were written.
    if (operation.committed > geometry_.depth) slices = std::max(slices, operation.committed - geometry_.depth);
    while (slices < operation.committed && is_written(slot_of(mark_of(number, slices)))) ++slices;
  }
  // A connection that breaks, or a revoked operation, drops frames that were not written.
  const bool dropped = operation.revoked || std::any_of(receivers_.begin(), receivers_.end(), [this](std::uint32_t receiver) {
                         return peer_group_.link(receiver)->broken();
                       });
  if (!dropped) operation.handed_over = slices;
  return operation.handed_over;
}

std::uint64_t TcpSender::released(std::uint64_t number) const {
  std::uint64_t least = handed_over(number);
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    if (peer_group_.done_by(receivers_[i]) >= number) continue;
    const Mark taken = credit_[i]->operations[number % kMostOperations].taken;
    least = std::min(least, operation_of(taken) == number ? slice_of(taken) : 0);
  }
  return least;
}

// ---- receiver ----

TcpReceiver::TcpReceiver(TcpPeerGroup& peer_group, StreamAddress address, const StreamGeometry& geometry)
    : peer_group_(peer_group), address_(address), geometry_(geometry), stream_(peer_group.open_stream(address, geometry)) {}

// All data that arrived on a connection was read before the connection was marked as broken.
const std::byte* TcpReceiver::front(Mark mark) {
  const bool over = peer_group_.link(address_.sender)->broken();
  const InStream::Message* const message = stream_.whole(mark);
  if (message == nullptr) {
    if (over) peer_group_.miss(address_.sender, operation_of(mark));
    return nullptr;
  }
  if (message->digest == geometry_.digest && message->size <= geometry_.slot_size) return message->data;
  std::array<char, 64> digests{};
  (void)std::snprintf(digests.data(), digests.size(), "digest %08x; expected digest %08x", message->digest, geometry_.digest);
  disagree(mark, digests.data());
  return nullptr;
}

bool TcpReceiver::has_size(Mark mark, std::size_t size) {
  const InStream::Message* const message = stream_.whole(mark);
  if (message != nullptr && message->size == size) return true;
  if (message != nullptr) disagree(mark, std::to_string(message->size) + " bytes; expected " + std::to_string(size) + " bytes");
  return false;
}

void TcpReceiver::disagree(Mark mark, const std::string& what) {
  peer_group_.disagree(address_.sender, operation_of(mark),
                       failure(Code::remote_error, "%s %u sent operation %llu with %s", peer_group_.setup_.called,
                               address_.sender, static_cast<unsigned long long>(operation_of(mark)), what.c_str()));
}

Frame TcpReceiver::frame_of(FrameKind kind) const {
  Frame frame = peer_group_.frame_of(kind);
  frame.digest = geometry_.digest;
  frame.port = address_.port;
  frame.group = address_.group;
  return frame;
}

void TcpReceiver::place(const Placement& placement) {
  stream_.want(placement, geometry_.digest);
  Link& link = *peer_group_.link(address_.sender);
  const bool all_taken = stream_.taken(placement.operation) * placement.stride >= placement.size;
  if (link.rails() == 0 || placement.size < kWorthTelling || all_taken) return;
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  if (link.tell_place(frame_of(FrameKind::place), placement)) peer_group_.push_out(link);
}

void TcpReceiver::displace(std::uint64_t operation) {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  const Placement over = stream_.displace(operation);
  if (over.size == 0) return;
  peer_group_.link(address_.sender)->turn_away(over.first, over.size);
  peer_group_.setup_.domain->note_output();  // rails may have ended
}

// Reports the release to the sender if the sender may have to wait for it, in steps of a part of the credit.
void TcpReceiver::release(Mark mark) {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  stream_.drop(mark);
  --peer_group_.peers_[address_.sender].unread[operation_of(mark) % kMostOperations];
  const std::uint64_t taken = slice_of(mark) + 1;
  const std::uint64_t granted = slices_ahead(geometry_, stream_.window());
  Link& link = *peer_group_.link(address_.sender);
  if (link.rails() > 0) link.end_place(frame_of(FrameKind::place), mark);
  const std::uint64_t step = std::max<std::uint64_t>(1, granted / (link.far() ? kFarStreamParts : kNearStreamParts));
  if (geometry_.slices <= granted || taken % step != 0 || taken >= geometry_.slices) return;
  Frame frame = frame_of(FrameKind::credit);
  frame.mark = mark + 1;
  frame.offset = static_cast<std::uint32_t>(granted);
  link.queue_urgent(frame);
  peer_group_.push_out(link);
}

}  // namespace seto::tcp
