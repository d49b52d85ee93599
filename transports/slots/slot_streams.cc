#include "transports/slots/slot_streams.h"

#include <algorithm>
#include <cstring>

namespace seto::slots {
namespace {

constexpr std::uint32_t kSlotAlignment = 64;

std::uint32_t padded(std::uint32_t size) { return (size + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

// Lines beyond the head.
std::uint32_t tail_lines(std::uint32_t size) {
  return size <= kHeadBytes ? 0 : (size - kHeadBytes + kTailBytes - 1) / kTailBytes;
}

bool fits_inline(const StreamGeometry& geometry) { return geometry.slot_size <= kInlineSize && geometry.slices == 1; }

// Of a stream whose messages fill much of a cache the receivers give every slot back at once, so that the next operation may go
// on in the same ones: half the memory, and half of what the caches hold (1 MiB between 2 ranks near: 57.5 -> 49.3 us; 4 MiB
// between 4: 737 -> 574 us). For a shorter one the reply costs more than it saves: a flight, where the headers of the other
// direction bring credit for nothing (64 KiB: 3.6 -> 4.1 us).
bool gives_every_slot_back(std::uint64_t slices, std::uint64_t stride) {
  constexpr std::uint64_t kMuch = 256 << 10;
  return slices * stride >= kMuch;
}

}  // namespace

// ---- sender ----

SlotSender::SlotSender(SlotCircle& circle, StreamAddress address, std::span<const std::uint32_t> receivers,
                       const StreamGeometry& geometry)
    : circle_(circle),
      address_(address),
      receivers_(receivers.begin(), receivers.end()),
      geometry_(geometry),
      target_(address.group > 0 ? circle.layout_.members() + address.group - 1 : receivers_.front()),
      serial_(++circle.streams_),
      stride_(padded(geometry.slot_size)),
      inline_(fits_inline(geometry)),
      lends_(!inline_ && std::all_of(receivers_.begin(), receivers_.end(),
                                     [&](std::uint32_t receiver) { return circle.setup_.members[receiver].same_process; })),
      tails_(inline_ ? tail_lines(geometry.slot_size) : 0) {
  geometry_.depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(1U, geometry.depth), geometry.slices));
  returns_ = gives_every_slot_back(geometry_.slices, stride_);
  const BoardLayout& layout = circle_.layout_;
  const std::uint32_t own = circle_.setup_.own;
  for (std::uint64_t w = 0; w < kWindow; ++w) {
    auto& lines = circle_.line<StreamLines>(own, layout.outgoing(w, address.port, target_));
    windows_[w].line = &lines.head;
    windows_[w].tail = lines.tail;
    for (const std::uint32_t receiver : receivers_)
      windows_[w].taken.push_back(&circle_.line<const CounterLine>(receiver, layout.taken(w, address.port, own, address.group)));
  }
}

std::byte* SlotSender::acquire(Mark mark) {
  const std::uint64_t operation = operation_of(mark);
  const std::uint64_t slice = slice_of(mark);
  Window& window = windows_[operation % kWindow];
  if (window.opened != operation && !open(window, operation, {})) return nullptr;
  if (inline_) return tails_ == 0 ? window.line->message : window.staging.data();
  if (!free_again(window, mark)) return nullptr;
  return circle_.setup_.members[circle_.setup_.own].segment + window.slots + slice % geometry_.depth * stride_;
}

// The line of operation k is free for k + kWindow when every receiver has completed k: every receiver of whatever stream used
// it in k, and another stream may have multicast to others through it.
bool SlotSender::open(Window& window, std::uint64_t operation, const Lent& lent) {
  std::uint64_t& user = circle_.line_user(operation % kWindow, address_.port, target_);
  const bool taken_over = address_.group > 0 && user != serial_;
  if (operation > kWindow && !circle_.passed(taken_over ? circle_.others_ : receivers_, operation - kWindow)) return false;
  if (lent.first != nullptr) {
    window.line->slots.offset = reinterpret_cast<std::uintptr_t>(lent.first);
    window.line->slots.stride = static_cast<std::uint32_t>(lent.stride);
    window.line->slots.check = check_of(window.line->slots.offset, window.line->slots.stride, 0);
    window.line->depth = 0;
  } else if (!inline_) {
    if (!choose_slots(window, operation)) return false;
    window.line->slots.offset = window.slots;
    window.line->slots.stride = stride_;
    window.line->slots.check = check_of(window.slots, stride_, geometry_.depth);
    window.line->depth = geometry_.depth;
  }
  user = serial_;
  window.line->digest = geometry_.digest;
  window.opened = operation;
  return true;
}

// The own ones of the last time, where every slot says when it is free; else those whose operation is longer ago. Of two
// operations under way the later one may come here first.
bool SlotSender::choose_slots(Window& window, std::uint64_t operation) {
  auto* lease = &circle_.lease(0, address_.port, target_);
  auto* newer = &circle_.lease(1, address_.port, target_);
  if (lease->operation > newer->operation) std::swap(lease, newer);
  if (returns_ && newer->user == serial_ && newer->operation < operation) lease = newer;
  const bool own = lease->user == serial_;
  window.goes_on = returns_ && own && lease->operation + 1 == operation;
  const auto& readers = own || address_.group == 0 ? receivers_ : circle_.others_;
  if (!window.goes_on && !circle_.passed(readers, lease->operation)) return false;
  if (!circle_.grow(*lease, std::size_t{stride_} * geometry_.depth)) return false;
  lease->operation = operation;
  lease->user = serial_;
  window.slots = lease->offset;
  return true;
}

bool SlotSender::free_again(Window& window, Mark mark) {
  const std::uint64_t slice = slice_of(mark);
  if (slice >= geometry_.depth) return credit(window, mark - geometry_.depth + 1);
  if (!window.goes_on) return true;
  // The last slice of the operation before that lay in this slot.
  const std::uint64_t last = geometry_.slices - 1;  // depth is at most the number of slices
  const std::uint64_t before = last - (last - slice) % geometry_.depth;
  const std::uint64_t operation = operation_of(mark) - 1;
  // Who has ended that operation reads nothing of it any more, even if it rejected its call and never read anything.
  return credit(windows_[operation % kWindow], mark_of(operation, before) + 1) || circle_.passed(receivers_, operation);
}

bool SlotSender::credit(Window& window, Mark needed) {
  if (window.taken_by_all >= needed) return true;
  Mark least = ~Mark{0};
  for (const CounterLine* taken : window.taken) least = std::min(least, taken->value.load(std::memory_order_acquire));
  window.taken_by_all = least;
  return least >= needed;
}

bool SlotSender::lend(Mark mark, const std::byte* first, std::size_t stride) {
  const std::uint64_t operation = operation_of(mark);
  Window& window = windows_[operation % kWindow];
  return window.opened == operation || open(window, operation, {first, stride});
}

bool SlotSender::taken(std::uint64_t operation) {
  return credit(windows_[operation % kWindow], mark_of(operation, geometry_.slices - 1) + 1);
}

// A receiver says that it reads and then asks whether it still may; this end says that it may not and then asks who reads. At
// least one of them sees the other.
bool SlotSender::revoke(std::uint64_t operation) {
  const Window& window = windows_[operation % kWindow];
  window.line->revoked.store(operation, std::memory_order_seq_cst);
  return std::none_of(window.taken.begin(), window.taken.end(),
                      [&](const CounterLine* receiver) { return receiver->held.load(std::memory_order_seq_cst) == operation; });
}

// Streams are filled in slice order, so the line's mark is a count of what is there.
void SlotSender::commit(Mark mark) {
  Window& window = windows_[operation_of(mark) % kWindow];
  if (slice_of(mark) == 0) window.line->done = circle_.done_;
  if (tails_ > 0) {
    std::memcpy(window.line->message, window.staging.data(), kHeadBytes);
    for (std::uint32_t i = 0; i < tails_; ++i) {
      std::memcpy(window.tail[i].message, window.staging.data() + kHeadBytes + i * kTailBytes, kTailBytes);
      window.tail[i].mark.store(mark + 1, std::memory_order_release);
    }
  }
  window.line->mark.store(mark + 1, std::memory_order_release);
  for (const std::uint32_t receiver : receivers_) circle_.wake(receiver);
}

// ---- receiver ----

SlotReceiver::SlotReceiver(SlotCircle& circle, StreamAddress address, const StreamGeometry& geometry)
    : circle_(circle),
      sender_(address.sender),
      geometry_(geometry),
      inline_(fits_inline(geometry)),
      borrows_(!inline_ && circle.setup_.members[sender_].same_process),
      tails_(inline_ ? tail_lines(geometry.slot_size) : 0) {
  const BoardLayout& layout = circle_.layout_;
  const std::uint32_t own = circle_.setup_.own;
  const std::uint32_t target = address.group > 0 ? layout.members() + address.group - 1 : own;
  for (std::uint64_t w = 0; w < kWindow; ++w) {
    const auto& lines = circle_.line<const StreamLines>(sender_, layout.outgoing(w, address.port, target));
    windows_[w].line = &lines.head;
    windows_[w].tail = lines.tail;
    windows_[w].taken = &circle_.line<CounterLine>(own, layout.taken(w, address.port, sender_, address.group));
  }
}

const std::byte* SlotReceiver::front(Mark mark) {
  const std::uint64_t operation = operation_of(mark);
  Window& window = windows_[operation % kWindow];
  if (window.committed <= mark) {
    // All lines of a short message are asked for at once, so that their flights overlap: one after another they cost as much as
    // a slot (256 B far: 540 ns).
    bool whole = true;
    for (std::uint32_t i = 0; i < tails_; ++i) whole &= window.tail[i].mark.load(std::memory_order_acquire) > mark;
    const Mark committed = window.line->mark.load(std::memory_order_acquire);
    if (committed <= mark || (!whole && window.line->digest == geometry_.digest)) return nullptr;
    window.committed = committed;
    if (window.opened == operation && !plausible(window, operation)) return nullptr;
  }
  if (window.opened != operation && !open(window, operation)) return nullptr;
  if (inline_) return tails_ == 0 ? window.line->message : unpack(window);
  if (window.depth == 0) return window.slots + slice_of(mark) * window.stride;
  return window.slots + slice_of(mark) % window.depth * window.stride;
}

// Nothing of a header is believed before it was checked: a stray store of a peer must end in an error, not in a crash.
bool SlotReceiver::open(Window& window, std::uint64_t operation) {
  const StreamLine& line = *window.line;
  if (operation_of(window.committed - 1) != operation || line.digest != geometry_.digest) {
    circle_.fail(failure(
        Code::remote_error, "%s %u sent operation %llu with digest %08x where operation %llu with digest %08x was due",
        circle_.setup_.called, circle_.number_of(sender_), static_cast<unsigned long long>(operation_of(window.committed - 1)),
        line.digest, static_cast<unsigned long long>(operation), geometry_.digest));
    return false;
  }
  if (!plausible(window, operation)) return false;
  const std::uint64_t done = line.done;
  if (done >= operation) {  // believed, it would be credit for slots that are still read
    circle_.fail(failure(Code::remote_error,
                         "%s %u: the header of its stream is garbage (%llu operations completed during operation %llu)",
                         circle_.setup_.called, circle_.number_of(sender_), static_cast<unsigned long long>(done),
                         static_cast<unsigned long long>(operation)));
    return false;
  }
  circle_.heard(sender_, done);
  if (!inline_ && !find_slots(window)) return false;
  window.opened = operation;
  return true;
}

bool SlotReceiver::find_slots(Window& window) {
  const StreamLine& line = *window.line;
  const Member& sender = circle_.setup_.members[sender_];
  const std::uint64_t offset = line.slots.offset;  // copied once: what was checked is what is used
  const std::uint32_t stride = line.slots.stride;
  const std::uint32_t depth = line.depth;
  const std::uint64_t size = std::uint64_t{stride} * depth;
  const bool lent = borrows_ && depth == 0;
  const bool within = lent || (depth > 0 && stride % kSlotAlignment == 0 && offset % kSlotAlignment == 0 &&
                               size <= sender.segment_size && offset <= sender.segment_size - size);
  if (!within || line.slots.check != check_of(offset, stride, depth) || stride < geometry_.slot_size) {
    circle_.fail(failure(Code::remote_error, "%s %u: the header of its stream is garbage (offset %llu, stride %u, depth %u)",
                         circle_.setup_.called, circle_.number_of(sender_), static_cast<unsigned long long>(offset), stride,
                         depth));
    return false;
  }
  window.slots = lent ? reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(offset)) : sender.segment + offset;
  window.stride = stride;
  window.depth = depth;
  return true;
}

// More slices than there are cannot have been committed.
bool SlotReceiver::plausible(Window& window, std::uint64_t operation) {
  if (window.committed <= mark_of(operation, geometry_.slices)) return true;
  circle_.fail(failure(Code::remote_error, "%s %u: the header of its stream is garbage (%llu slices sent of %llu)",
                       circle_.setup_.called, circle_.number_of(sender_),
                       static_cast<unsigned long long>(slice_of(window.committed)),
                       static_cast<unsigned long long>(geometry_.slices)));
  window.committed = 0;
  return false;
}

const std::byte* SlotReceiver::unpack(Window& window) {
  std::memcpy(window.staging.data(), window.line->message, kHeadBytes);
  for (std::uint32_t i = 0; i < tails_; ++i)
    std::memcpy(window.staging.data() + kHeadBytes + i * kTailBytes, window.tail[i].message, kTailBytes);
  return window.staging.data();
}

bool SlotReceiver::hold(Mark mark) {
  const Window& window = windows_[operation_of(mark) % kWindow];
  if (window.depth > 0) return true;
  window.taken->held.store(operation_of(mark), std::memory_order_seq_cst);
  if (window.line->revoked.load(std::memory_order_seq_cst) != operation_of(mark)) return true;
  let_go(mark);
  return false;
}

void SlotReceiver::let_go(Mark mark) { windows_[operation_of(mark) % kWindow].taken->held.store(0, std::memory_order_release); }

void SlotReceiver::release(Mark mark) {
  if (inline_) return;  // free when this member has completed the operation
  Window& window = windows_[operation_of(mark) % kWindow];
  if (window.depth == 0) {
    let_go(mark);
    if (slice_of(mark) + 1 < geometry_.slices) return;  // the sender waits for the last alone
  } else if (slice_of(mark) + window.depth >= geometry_.slices && !gives_every_slot_back(geometry_.slices, window.stride)) {
    return;  // its slot is not used again in this operation
  }
  window.taken->value.store(mark + 1, std::memory_order_release);
  circle_.wake(sender_);
}

}  // namespace seto::slots
