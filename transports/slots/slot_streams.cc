#include "transports/slots/slot_streams.h"

#include <algorithm>
#include <cstring>

namespace seto::slots {
namespace {

constexpr std::uint32_t kSlotAlignment = 64;

std::uint32_t padded(std::uint32_t size) { return (size + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

// The number of lines beyond the head that a message of this size needs.
std::uint32_t tail_lines(std::uint32_t size) {
  return size <= kHeadBytes ? 0 : (size - kHeadBytes + kTailBytes - 1) / kTailBytes;
}

bool fits_inline(const StreamGeometry& geometry, std::uint32_t port) {
  return geometry.slot_size <= (BoardLayout::has_inline_lines(port) ? kInlineSize : kHeadBytes) && geometry.slices == 1;
}

// A sender that fills a slot again takes each line away from the core of its receiver, whose cache has kept it. So the slots of
// an operation lie behind those of the one before it, and come back to the same lines when these have left that cache (decision
// 52): all_reduce between 2 near ranks takes 3.1 -> 1.9 us for 16 KiB, 10.5 -> 5.2 for 64, 26 -> 17 for 256. The slots of shorter
// operations stay in the nearest cache, where they gain nothing by it.
constexpr std::size_t kSmallestToMoveOn = 8 << 10;

// From the first byte of an operation's lent messages to the end of the last, which may be shorter than a slot.
std::uint64_t bytes_of(const StreamGeometry& geometry, std::uint64_t stride) {
  return (geometry.slices - 1) * stride + geometry.slot_size;
}

bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(std::memory_order_acquire); }

}  // namespace

// ---- sender ----

SlotSender::SlotSender(SlotPeerGroup& peer_group, StreamAddress address, std::span<const std::uint32_t> receivers,
                       const StreamGeometry& geometry)
    : peer_group_(peer_group),
      address_(address),
      receivers_(receivers.begin(), receivers.end()),
      geometry_(geometry),
      target_(address.group > 0 ? peer_group.boards_.layout().members() + address.group - 1 : receivers_.front()),
      use_(peer_group.leases_.use_of(address.port, target_)),
      serial_(++peer_group.streams_),
      stride_(padded(geometry.slot_size)),
      inline_(fits_inline(geometry, address.port)),
      lends_(!inline_ && std::all_of(receivers_.begin(), receivers_.end(),
                                     [&](std::uint32_t receiver) { return peer_group.boards_.member(receiver).same_process; })),
      tails_(inline_ ? tail_lines(geometry.slot_size) : 0) {
  geometry_.depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(1U, geometry.depth), geometry.slices));
  returns_ = peer_group.gives_every_slot_back(geometry_.slices, stride_);
  bytes_ = std::size_t{stride_} * geometry_.depth;
  const bool moves_on = bytes_ >= kSmallestToMoveOn && !returns_ && 2 * bytes_ <= peer_group.room_of_lease_;
  room_ = moves_on ? peer_group.room_of_lease_ : bytes_;
  const BoardLayout& layout = peer_group_.boards_.layout();
  const std::uint32_t own = peer_group_.boards_.own();
  for (std::uint64_t w = 0; w < kWindow; ++w) {
    const std::size_t lines = layout.outgoing(w, address.port, target_);
    windows_[w].line = &peer_group_.boards_.line<StreamLine>(own, lines);
    if (tails_ > 0) windows_[w].tail = peer_group_.boards_.line<StreamLines>(own, lines).tail;
    for (const std::uint32_t receiver : receivers_)
      windows_[w].taken.push_back(
          &peer_group_.boards_.line<const Counter>(receiver, layout.taken(w, address.port, own, address.group)));
  }
}

std::byte* SlotSender::acquire(Mark mark) {
  const std::uint64_t operation = operation_of(mark);
  const std::uint64_t slice = slice_of(mark);
  Window& window = windows_[operation % kWindow];
  if (window.opened != operation && !open(window, operation, std::nullopt)) return nullptr;
  if (window.lent) return nullptr;
  if (inline_) return tails_ == 0 ? window.line->message : window.staging.data();
  if (!free_again(window, mark)) return nullptr;
  return peer_group_.boards_.own_segment() + window.slots + slice % geometry_.depth * stride_;
}

// The line of operation k is free for k + kWindow when every receiver of the stream that used the line in k has completed k.
// Another stream may have used the line for a multicast to other receivers: then all members must have completed k.
bool SlotSender::open(Window& window, std::uint64_t operation, const std::optional<Position>& lent) {
  std::uint64_t& user = use_.line_users[operation % kWindow];
  const bool taken_over = address_.group > 0 && user != serial_;
  if (operation > kWindow && !peer_group_.passed(taken_over ? peer_group_.others_ : receivers_, operation - kWindow))
    return false;
  if (!inline_) {
    if (!lent && !choose_slots(window, operation)) return false;
    window.position = lent.value_or(Position{window.slots, stride_, geometry_.depth});
  }
  window.lent = lent.has_value();
  user = serial_;
  window.opened = operation;
  return true;
}

// The receiver polls this line. Each poll between two stores takes the line away from the sender, which costs a flight of the
// line, so all fields are stored together and the mark right behind them.
void SlotSender::put_header(Window& window) {
  StreamLine& line = *window.line;
  if (!inline_) {
    const Position& position = window.position;
    line.slots.offset = position.offset;
    line.slots.stride = position.stride;
    line.slots.check = check_of(position.offset, position.stride, position.depth);
    line.depth = position.depth;
  }
  line.digest = geometry_.digest;
  line.done = peer_group_.done_;
}

// Chooses this stream's slots of the last operation if receivers report every slot; otherwise the lease with the older operation.
// The later of two operations in flight may call this first.
bool SlotSender::choose_slots(Window& window, std::uint64_t operation) {
  auto* lease = &use_.leases[0];
  auto* newer = &use_.leases[1];
  if (lease->operation > newer->operation) std::swap(lease, newer);
  if (returns_ && newer->user == serial_ && newer->operation < operation) lease = newer;
  const bool own = lease->user == serial_;
  window.goes_on = returns_ && own && lease->operation + 1 == operation;
  const auto& readers = own || address_.group == 0 ? receivers_ : peer_group_.others_;
  if (!window.goes_on && !peer_group_.passed(readers, lease->operation)) return false;
  const int node = peer_group_.boards_.node_of(receivers_);
  if (Status grown = peer_group_.leases_.grow(*lease, bytes_, room_, node); !grown.ok()) {
    peer_group_.fail(std::move(grown));
    return false;
  }
  lease->operation = operation;
  lease->user = serial_;
  window.slots = lease->offset + place_in(*lease);
  return true;
}

std::size_t SlotSender::place_in(SlotLeases::Lease& lease) const {
  if (room_ == bytes_) return 0;
  const std::size_t place = lease.next + bytes_ <= lease.size ? lease.next : 0;
  lease.next = place + bytes_;
  return place;
}

bool SlotSender::free_again(Window& window, Mark mark) {
  const std::uint64_t slice = slice_of(mark);
  if (slice >= geometry_.depth) return credit(window, mark - geometry_.depth + 1);
  if (!window.goes_on) return true;
  // The last slice of the operation before that lay in this slot.
  const std::uint64_t last = geometry_.slices - 1;  // depth is at most the number of slices
  const std::uint64_t before = last - (last - slice) % geometry_.depth;
  const std::uint64_t operation = operation_of(mark) - 1;
  // A receiver that has completed that operation reads no slot of it any more, even if it rejected its call and never read one.
  return credit(windows_[operation % kWindow], mark_of(operation, before) + 1) || peer_group_.passed(receivers_, operation);
}

bool SlotSender::credit(Window& window, Mark needed) {
  if (window.taken_by_all >= needed) return true;
  Mark least = ~Mark{0};
  for (const Counter* taken : window.taken) least = std::min(least, taken->value.load(std::memory_order_acquire));
  window.taken_by_all = least;
  return least >= needed;
}

bool SlotSender::lend(Mark mark, const std::byte* first, std::size_t stride) {
  const std::uint64_t operation = operation_of(mark);
  Window& window = windows_[operation % kWindow];
  if (window.opened == operation) return window.lent;
  Position position{reinterpret_cast<std::uintptr_t>(first), static_cast<std::uint32_t>(stride), kLentHere};
  if (!lends_) {
    const LendableMemory* const lendable = peer_group_.boards_.setup().lendable;
    if (inline_ || lendable == nullptr) return false;
    const std::optional<std::uint64_t> offset = lendable->offset_of(first, bytes_of(geometry_, stride));
    if (!offset || !receivers_read_our_memory()) return false;
    position.offset = *offset;
    position.depth = kLentInFile;
  }
  return open(window, operation, position);
}

// Receivers in other processes are asked once, when there is something to lend for the first time.
bool SlotSender::receivers_read_our_memory() {
  if (readable_) return true;
  bool all = true;
  for (const std::uint32_t receiver : receivers_) {
    const Member& member = peer_group_.boards_.member(receiver);
    if (member.same_process || (member.partner != nullptr && member.partner->reads_ours())) continue;
    if (member.partner != nullptr) member.partner->offer();
    all = false;
  }
  return readable_ = all;
}

bool SlotSender::taken(std::uint64_t operation) {
  Window& window = windows_[operation % kWindow];
  return !window.lent || credit(window, mark_of(operation, geometry_.slices - 1) + 1);
}

// The sender stores `revoked`, then loads `held`; a receiver stores `held`, then loads `revoked`. At least one of the two sees
// the other's store. A receiver whose process has ended reads nothing. One whose process stands still may do so for ever, so it
// is not waited for: what it reads when it goes on is mapped there and no more valid, which it finds out (check_not_abandoned).
bool SlotSender::revoke(std::uint64_t operation) {
  const Window& window = windows_[operation % kWindow];
  if (!window.lent || window.opened != operation) return true;
  const bool abandoned = window.line->revoked.load(std::memory_order_relaxed) == (operation | kAbandoned);
  if (!abandoned) window.line->revoked.store(operation, std::memory_order_seq_cst);
  bool all = true;
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    if (window.taken[i]->held.load(std::memory_order_seq_cst) != operation) continue;
    const Member& member = peer_group_.boards_.member(receivers_[i]);
    if (is_set(member.dead)) continue;
    if (is_set(member.frozen))
      window.line->revoked.store(operation | kAbandoned, std::memory_order_seq_cst);
    else
      all = false;
  }
  return all;
}

// Streams are filled in slice order, so the mark of the line is the number of committed slices.
void SlotSender::commit(Mark mark, std::size_t) {
  Window& window = windows_[operation_of(mark) % kWindow];
  if (tails_ > 0) return send_parts(window, mark, window.staging.data(), kHeadBytes + tails_ * kTailBytes);
  if (slice_of(mark) == 0) put_header(window);
  tell(window, mark);
}

bool SlotSender::send(Mark mark, const std::byte* message, std::size_t size) {
  if (!inline_) return SendStream::send(mark, message, size);
  const std::uint64_t operation = operation_of(mark);
  Window& window = windows_[operation % kWindow];
  if (window.opened != operation && !open(window, operation, std::nullopt)) return false;
  send_parts(window, mark, message, size);
  return true;
}

// The lines of a short message, straight from where it lies.
void SlotSender::send_parts(Window& window, Mark mark, const std::byte* message, std::size_t size) {
  for (std::uint32_t i = 0; i < tails_; ++i) {
    const std::size_t begin = kHeadBytes + std::size_t{i} * kTailBytes;
    if (size >= begin + kTailBytes)
      std::memcpy(window.tail[i].message, message + begin, kTailBytes);
    else if (size > begin)
      std::memcpy(window.tail[i].message, message + begin, size - begin);
    window.tail[i].mark.store(mark + 1, std::memory_order_release);
  }
  std::memcpy(window.line->message, message, std::min<std::size_t>(size, kHeadBytes));
  put_header(window);
  tell(window, mark);
}

void SlotSender::tell(Window& window, Mark mark) {
  window.line->mark.store(mark + 1, std::memory_order_release);
  for (const std::uint32_t receiver : receivers_) peer_group_.boards_.wake(receiver);
  if (inline_) announce_next(windows_[(operation_of(mark) + 1) % kWindow]);
}

// After the mark, so that it costs the receivers nothing.
void SlotSender::announce_next(const Window& window) const {
  peer_group_.next_lines_.add(window.line, sizeof(StreamLine));
  if (tails_ > 0) peer_group_.next_lines_.add(window.tail, tails_ * sizeof(TailLine));
}

std::uint64_t SlotSender::handed_over(std::uint64_t operation) const {
  const Window& window = windows_[operation % kWindow];
  if (window.opened != operation) return window.opened > operation ? geometry_.slices : 0;
  const Mark committed = window.line->mark.load(std::memory_order_relaxed);
  if (operation_of(committed) != operation) return operation_of(committed) > operation ? geometry_.slices : 0;
  return slice_of(committed);
}

// Receivers report only the slots that are needed again, so the position may lag until they have completed the operation.
std::uint64_t SlotSender::released(std::uint64_t operation) const {
  const Window& window = windows_[operation % kWindow];
  if (window.opened != operation) return window.opened > operation ? geometry_.slices : 0;
  std::uint64_t least = geometry_.slices;
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    if (peer_group_.status_.completed_by(receivers_[i]) >= operation) continue;
    const Mark taken = window.taken[i]->value.load(std::memory_order_acquire);
    least = std::min(least, operation_of(taken) == operation ? slice_of(taken) : 0);
  }
  return std::min(least, handed_over(operation));
}

// ---- receiver ----

SlotReceiver::SlotReceiver(SlotPeerGroup& peer_group, StreamAddress address, const StreamGeometry& geometry)
    : peer_group_(peer_group),
      sender_(address.sender),
      geometry_(geometry),
      inline_(fits_inline(geometry, address.port)),
      borrows_(!inline_ &&
               (peer_group.boards_.member(sender_).same_process || peer_group.boards_.member(sender_).partner != nullptr)),
      tails_(inline_ ? tail_lines(geometry.slot_size) : 0) {
  const BoardLayout& layout = peer_group_.boards_.layout();
  const std::uint32_t own = peer_group_.boards_.own();
  const std::uint32_t target = address.group > 0 ? layout.members() + address.group - 1 : own;
  for (std::uint64_t w = 0; w < kWindow; ++w) {
    const std::size_t lines = layout.outgoing(w, address.port, target);
    windows_[w].line = &peer_group_.boards_.line<const StreamLine>(sender_, lines);
    if (tails_ > 0) windows_[w].tail = peer_group_.boards_.line<const StreamLines>(sender_, lines).tail;
    windows_[w].taken = &peer_group_.boards_.line<Counter>(own, layout.taken(w, address.port, sender_, address.group));
  }
}

const std::byte* SlotReceiver::front(Mark mark) {
  const std::uint64_t operation = operation_of(mark);
  Window& window = windows_[operation % kWindow];
  if (window.committed <= mark) {
    // All lines of a short message are loaded together, so that their cache misses overlap: one after another they cost as much
    // as a slot (256 B far: 540 ns).
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

// Every field of a header is checked before it is used: a stray store of a peer must end in an error, not in a crash.
bool SlotReceiver::open(Window& window, std::uint64_t operation) {
  const StreamLine& line = *window.line;
  if (operation_of(window.committed - 1) != operation || line.digest != geometry_.digest) {
    peer_group_.fail(failure(Code::remote_error,
                             "%s %u sent operation %llu with digest %08x; expected operation %llu with digest %08x",
                             peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_),
                             static_cast<unsigned long long>(operation_of(window.committed - 1)), line.digest,
                             static_cast<unsigned long long>(operation), geometry_.digest));
    return false;
  }
  if (!plausible(window, operation)) return false;
  const std::uint64_t done = line.done;
  if (done >= operation) {  // accepted, this would be credit for slots that are still read
    peer_group_.fail(failure(Code::remote_error,
                             "%s %u: the header of its stream is garbage (%llu operations completed during operation %llu)",
                             peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_),
                             static_cast<unsigned long long>(done), static_cast<unsigned long long>(operation)));
    return false;
  }
  peer_group_.learn(sender_, done);
  if (!inline_ && !find_slots(window)) return false;
  window.opened = operation;
  return true;
}

bool SlotReceiver::find_slots(Window& window) {
  const StreamLine& line = *window.line;
  const Member& sender = peer_group_.boards_.member(sender_);
  const std::uint64_t offset = line.slots.offset;  // copied once: the checked value is the used value
  const std::uint32_t stride = line.slots.stride;
  const std::uint32_t depth = line.depth;
  const std::uint64_t size = std::uint64_t{stride} * depth;
  const std::byte* const lent = find_lent(offset, stride, depth);
  const bool within = lent != nullptr || (depth > 0 && stride % kSlotAlignment == 0 && offset % kSlotAlignment == 0 &&
                                          size <= sender.segment_size && offset <= sender.segment_size - size);
  if (!within || line.slots.check != check_of(offset, stride, depth) || stride < geometry_.slot_size) {
    peer_group_.fail(failure(Code::remote_error, "%s %u: the header of its stream is garbage (offset %llu, stride %u, depth %u)",
                             peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_),
                             static_cast<unsigned long long>(offset), stride, depth));
    return false;
  }
  window.slots = lent != nullptr ? lent : sender.segment + offset;
  window.stride = stride;
  window.depth = lent != nullptr ? 0 : depth;
  return true;
}

// Null: the header names no lent memory that this member can read.
const std::byte* SlotReceiver::find_lent(std::uint64_t offset, std::uint32_t stride, std::uint32_t depth) const {
  const Member& sender = peer_group_.boards_.member(sender_);
  if (!borrows_) return nullptr;
  if (depth == kLentHere && sender.same_process) return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(offset));
  const LendableMemory* const own = peer_group_.boards_.setup().lendable;
  const LendableMemory* const lendable = sender.same_process ? own : &sender.partner->theirs();
  return depth == kLentInFile && lendable != nullptr ? lendable->at(offset, bytes_of(geometry_, stride)) : nullptr;
}

// A peer cannot have committed more slices than the operation has.
bool SlotReceiver::plausible(Window& window, std::uint64_t operation) {
  if (window.committed <= mark_of(operation, geometry_.slices)) return true;
  peer_group_.fail(failure(Code::remote_error, "%s %u: the header of its stream is garbage (%llu slices sent of %llu)",
                           peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_),
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
  if ((window.line->revoked.load(std::memory_order_seq_cst) & ~kAbandoned) != operation_of(mark)) return true;
  let_go(mark);
  return false;
}

void SlotReceiver::let_go(Mark mark) { windows_[operation_of(mark) % kWindow].taken->held.store(0, std::memory_order_release); }

// The owner went on without this reader, whose process stood still in the middle of a slice: what was read may be anything. All
// reads of the slice come before the load.
void SlotReceiver::check_not_abandoned(const Window& window, std::uint64_t operation) {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (window.line->revoked.load(std::memory_order_seq_cst) != (operation | kAbandoned)) return;
  peer_group_.was_abandoned_ = true;
  peer_group_.fail(failure(Code::remote_error,
                           "%s %u did not wait until this process had read its buffers: this process stood still for too long",
                           peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_)));
}

void SlotReceiver::release(Mark mark) {
  if (inline_) return;  // the line is free once this member has completed the operation
  Window& window = windows_[operation_of(mark) % kWindow];
  if (window.depth == 0) {
    check_not_abandoned(window, operation_of(mark));
    let_go(mark);
    if (slice_of(mark) + 1 < geometry_.slices) return;  // the sender waits for the last slice only
  } else if (slice_of(mark) + window.depth >= geometry_.slices &&
             !peer_group_.gives_every_slot_back(geometry_.slices, window.stride)) {
    return;  // the slot is not used again in this operation
  }
  window.taken->value.store(mark + 1, std::memory_order_release);
  peer_group_.boards_.wake(sender_);
}

}  // namespace seto::slots
