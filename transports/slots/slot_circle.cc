#include "transports/slots/slot_circle.h"

#include <algorithm>

#include "transports/slots/pair_streams.h"
#include "transports/slots/slot_streams.h"
#include "transports/slots/words.h"

namespace seto::slots {
void put_identity(std::byte* board, const BoardLayout& layout, std::uint64_t identity) {
  reinterpret_cast<CounterLine*>(board + layout.identity())->value.store(identity, std::memory_order_release);
}

Result<std::unique_ptr<SlotCircle>> SlotCircle::create(CircleSetup setup) {
  const BoardLayout layout(static_cast<std::uint32_t>(setup.members.size()), setup.ports);
  if (setup.own >= setup.members.size())
    return seto::failure(Code::invalid_argument, "%s %u of a circle of %zu", setup.called, setup.own, setup.members.size());
  for (std::size_t i = 0; i < setup.members.size(); ++i) {
    const Member& member = setup.members[i];
    if (member.board % kLineSize != 0 || member.segment_size < layout.size() ||
        member.board > member.segment_size - layout.size())
      return seto::failure(Code::remote_error, "%s %zu: its board at offset %zu is not within its segment of %zu bytes",
                           setup.called, i, member.board, member.segment_size);
  }
  return std::unique_ptr<SlotCircle>(new SlotCircle(std::move(setup)));
}

SlotCircle::SlotCircle(CircleSetup setup)
    : setup_(std::move(setup)),
      layout_(static_cast<std::uint32_t>(setup_.members.size()), setup_.ports),
      done_by_(setup_.members.size(), 0),
      in_use_(kWindow * setup_.ports) {
  for (std::uint32_t member = 0; member < members(); ++member)
    if (member != setup_.own) others_.push_back(member);
}

SlotCircle::~SlotCircle() { give_back_slots(); }

// A sender is done when its slots are filled, and may be gone before they are read. Such slots stay leased for as long as the
// pool lives, unless somebody comes back who has heard of their last reader.
void SlotCircle::give_back_slots() {
  for (PortUse& use : in_use_)
    for (std::uint32_t target = 0; target < use.leases.size(); ++target) {
      Lease& lease = use.leases[target];
      if (lease.size == 0 || still_read(target, lease.operation)) continue;
      setup_.pool->give_back(lease.offset, lease.size);
      lease.size = 0;
    }
}

Result<std::unique_ptr<SendStream>> SlotCircle::open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                          const StreamGeometry& geometry) {
  if (address.port >= layout_.ports() || address.group > kGroups)
    return seto::failure(Code::invalid_usage, "port %u or group %u is beyond the board's %u ports and %u groups", address.port,
                         address.group, layout_.ports(), kGroups);
  const auto foreign = [this](std::uint32_t member) { return member >= members(); };
  if (receivers.empty() || (address.group == 0 && receivers.size() > 1) ||
      std::any_of(receivers.begin(), receivers.end(), foreign))
    return seto::failure(Code::invalid_usage, "a stream of group %u cannot have %zu receivers, or not those: %ss are 0 to %u",
                         address.group, receivers.size(), setup_.called, members() - 1);
  SETO_TRY(check(geometry));
  return std::unique_ptr<SendStream>(new SlotSender(*this, address, receivers, geometry));
}

Result<std::unique_ptr<ReceiveStream>> SlotCircle::open_receive(StreamAddress address, const StreamGeometry& geometry) {
  if (address.port >= layout_.ports() || address.group > kGroups || address.sender >= members())
    return seto::failure(Code::invalid_usage, "port %u, group %u or sender %u is beyond the board", address.port, address.group,
                         address.sender);
  SETO_TRY(check(geometry));
  return std::unique_ptr<ReceiveStream>(new SlotReceiver(*this, address, geometry));
}

Result<std::unique_ptr<PairSender>> SlotCircle::open_pair_send(std::uint32_t receiver) {
  if (receiver >= members() || receiver == setup_.own)
    return seto::failure(Code::invalid_usage, "messages to %s %u: the others are 0 to %u without %u", setup_.called, receiver,
                         members() - 1, setup_.own);
  return std::unique_ptr<PairSender>(new SlotPairSender(*this, receiver));
}

Result<std::unique_ptr<PairReceiver>> SlotCircle::open_pair_receive(std::uint32_t sender) {
  if (sender >= members() || sender == setup_.own)
    return seto::failure(Code::invalid_usage, "messages of %s %u: the others are 0 to %u without %u", setup_.called, sender,
                         members() - 1, setup_.own);
  return std::unique_ptr<PairReceiver>(new SlotPairReceiver(*this, sender));
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

// Who departs has left: its fate is on its board before its identity goes, and stays until the board is given back.
Fate SlotCircle::fate_of(std::uint32_t member) const {
  const auto& fate = line<const CounterLine>(member, layout_.fate()).value;
  std::uint64_t value = fate.load(std::memory_order_acquire);
  const std::uint64_t identity = identity_on_board(member);
  const bool own = identity == setup_.members[member].identity;
  if (!own && identity == 0 && value == 0) value = fate.load(std::memory_order_acquire);  // it left between the two looks
  const bool given_back = !own && (identity != 0 || value == 0);
  if (given_back) return {static_cast<std::uint32_t>(Code::invalid_usage), number_of(member)};
  return {static_cast<std::uint32_t>(value >> 32), static_cast<std::uint32_t>(value)};
}

void SlotCircle::explain(std::string_view why) { put_words(line<WordLines>(setup_.own, layout_.words()), why); }

std::string SlotCircle::explanation_of(std::uint32_t member) const {
  return fate_of(member).reason == 0 ? std::string() : words_in(line<const WordLines>(member, layout_.words()));
}

void SlotCircle::depart() {
  line<CounterLine>(setup_.own, layout_.identity()).value.store(0, std::memory_order_release);
  give_back_slots();
}

bool SlotCircle::departed(std::uint32_t member) const { return identity_on_board(member) != setup_.members[member].identity; }

std::uint64_t SlotCircle::identity_on_board(std::uint32_t member) const {
  return line<const CounterLine>(member, layout_.identity()).value.load(std::memory_order_acquire);
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

SlotCircle::Lease& SlotCircle::lease(std::uint64_t which, std::uint32_t port, std::uint32_t target) {
  return use_of(which, port).leases[target];
}

std::uint64_t& SlotCircle::line_user(std::uint64_t window, std::uint32_t port, std::uint32_t target) {
  return use_of(window, port).users[target];
}

SlotCircle::PortUse& SlotCircle::use_of(std::uint64_t which, std::uint32_t port) {
  PortUse& use = in_use_[which * layout_.ports() + port];
  if (use.leases.empty()) {
    use.leases.resize(layout_.members() + kGroups);
    use.users.resize(use.leases.size());
  }
  return use;
}

bool SlotCircle::grow(Lease& lease, std::size_t size) {
  if (lease.size >= size) return true;
  Result<std::size_t> larger = setup_.pool->lease(size);
  if (!larger.ok()) {
    fail(larger.status());
    return false;
  }
  if (lease.size > 0) setup_.pool->give_back(lease.offset, lease.size);
  lease.offset = larger.value();
  lease.size = size;
  return true;
}

bool SlotCircle::gone(std::uint32_t member) const {
  const std::atomic<bool>* const dead = setup_.members[member].dead;
  return (dead != nullptr && dead->load(std::memory_order_acquire)) || fate_of(member).reason != 0;
}

// May a receiver still look at slots that were filled in this operation? One that has left has an error for a result.
bool SlotCircle::still_read(std::uint32_t target, std::uint64_t operation) const {
  for (const std::uint32_t member : others_) {
    if (target < members() && target != member) continue;
    if (completed_by(member) < operation && !gone(member)) return true;
  }
  return false;
}

}  // namespace seto::slots
