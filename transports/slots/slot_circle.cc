#include "transports/slots/slot_circle.h"

#include "transports/slots/slot_streams.h"

namespace seto::slots {

Result<std::unique_ptr<SlotCircle>> SlotCircle::create(CircleSetup setup) {
  const BoardLayout layout(static_cast<std::uint32_t>(setup.members.size()), setup.ports);
  for (std::size_t i = 0; i < setup.members.size(); ++i) {
    const Member& member = setup.members[i];
    if (member.board % kLineSize != 0 || member.segment_size < layout.size() || member.board > member.segment_size - layout.size())
      return seto::failure(Code::remote_error, "member %zu: its board at offset %zu is not within its segment of %zu bytes", i, member.board,
                     member.segment_size);
  }
  return std::unique_ptr<SlotCircle>(new SlotCircle(std::move(setup)));
}

SlotCircle::SlotCircle(CircleSetup setup)
    : setup_(std::move(setup)),
      layout_(static_cast<std::uint32_t>(setup_.members.size()), setup_.ports),
      done_by_(setup_.members.size(), 0),
      leases_(kWindow * setup_.ports * (setup_.members.size() + kGroups)) {}

SlotCircle::~SlotCircle() {
  for (const Lease& lease : leases_)
    if (lease.size > 0) setup_.pool->give_back(lease.offset, lease.size);
}

Result<std::unique_ptr<SendStream>> SlotCircle::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                          const StreamGeometry& geometry) {
  if (address.port >= layout_.ports() || address.group > kGroups)
    return seto::failure(Code::invalid_usage, "port %u or group %u is beyond the board's %u ports and %u groups", address.port, address.group,
                   layout_.ports(), kGroups);
  if (geometry.slices > kMaxSlices) return seto::failure(Code::invalid_argument, "%llu slices are more than a mark can count",
                                                   static_cast<unsigned long long>(geometry.slices));
  return std::unique_ptr<SendStream>(new SlotSender(*this, address, receivers, geometry));
}

Result<std::unique_ptr<ReceiveStream>> SlotCircle::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  if (address.port >= layout_.ports() || address.group > kGroups || address.sender >= members())
    return seto::failure(Code::invalid_usage, "port %u, group %u or sender %u is beyond the board", address.port, address.group, address.sender);
  return std::unique_ptr<ReceiveStream>(new SlotReceiver(*this, address, geometry));
}

// A seqlock, because a slow reader may come while a later operation takes the line over.
void SlotCircle::begin(const Note& note) {
  auto& line = this->line<NoteLine>(setup_.own, layout_.note(note.operation));
  line.sequence.store(note.operation * 2 + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  line.operation.store(note.operation, std::memory_order_relaxed);
  line.digest_and_verdict.store(std::uint64_t{note.digest} << 32 | note.verdict, std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::size(note.words); ++i) line.words[i].store(note.words[i], std::memory_order_relaxed);
  line.sequence.store(note.operation * 2 + 2, std::memory_order_release);
}

bool SlotCircle::note_of(std::uint32_t member, std::uint64_t operation, Note& note) const {
  const auto& line = this->line<const NoteLine>(member, layout_.note(operation));
  if (line.sequence.load(std::memory_order_acquire) != operation * 2 + 2) return false;
  note.operation = line.operation.load(std::memory_order_relaxed);
  const std::uint64_t both = line.digest_and_verdict.load(std::memory_order_relaxed);
  note.digest = static_cast<std::uint32_t>(both >> 32);
  note.verdict = static_cast<std::uint32_t>(both);
  for (std::size_t i = 0; i < std::size(note.words); ++i) note.words[i] = line.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  return line.sequence.load(std::memory_order_relaxed) == operation * 2 + 2;
}

void SlotCircle::complete(std::uint64_t operation) {
  done_ = operation;
  line<CounterLine>(setup_.own, layout_.progress()).value.store(operation, std::memory_order_release);
  for (std::uint32_t member = 0; member < members(); ++member)
    if (member != setup_.own) wake(member);
}

std::uint64_t SlotCircle::completed_by(std::uint32_t member) const {
  return line<const CounterLine>(member, layout_.progress()).value.load(std::memory_order_acquire);
}

void SlotCircle::leave(Fate fate) {
  std::uint64_t none = 0;
  auto& value = line<CounterLine>(setup_.own, layout_.fate()).value;
  if (!value.compare_exchange_strong(none, std::uint64_t{fate.reason} << 32 | fate.culprit)) return;
  for (std::uint32_t member = 0; member < members(); ++member)
    if (member != setup_.own) wake(member);
}

Fate SlotCircle::fate_of(std::uint32_t member) const {
  const std::uint64_t value = line<const CounterLine>(member, layout_.fate()).value.load(std::memory_order_acquire);
  return {static_cast<std::uint32_t>(value >> 32), static_cast<std::uint32_t>(value)};
}

bool SlotCircle::passed(std::span<const std::uint32_t> members, std::uint64_t operation) {
  for (const std::uint32_t member : members) {
    if (done_by_[member] >= operation) continue;
    heard(member, completed_by(member));
    if (done_by_[member] < operation) return false;
  }
  return true;
}

void SlotCircle::wake(std::uint32_t member) const {
  const Member& peer = setup_.members[member];
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the other half is a barrier on the side that sleeps: see Context::arm
  if (peer.armed != nullptr && peer.armed->load(std::memory_order_relaxed) != 0) setup_.doorbell->ring(member);
}

SlotCircle::Lease* SlotCircle::lease(std::uint64_t window, std::uint32_t port, std::uint32_t target, std::size_t size) {
  Lease& lease = leases_[(window * layout_.ports() + port) * (layout_.members() + kGroups) + target];
  if (lease.size >= size) return &lease;
  Result<std::size_t> larger = setup_.pool->lease(size);
  if (!larger.ok()) {
    fail(larger.status());
    return nullptr;
  }
  if (lease.size > 0) setup_.pool->give_back(lease.offset, lease.size);
  lease = {larger.value(), size};
  return &lease;
}

}  // namespace seto::slots
