#include "tests/support/peer_groups.h"

#include <linux/membarrier.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "src/base/fd.h"
#include "tests/support/child_process.h"
#include "tests/support/context_peer_groups.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/shm/segment.h"
#include "transports/shm/user_memory.h"
#include "transports/slots/slot_peer_group.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kTestSegment = std::uint64_t{64} << 20;

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

// A member's memory and wakeup descriptor, made before its thread or process.
struct SlotHome {
  SlotHome(const PeerGroupsWanted& wanted)
      : segment(Segment::create({kTestSegment, wanted.limit_bytes}).value()),
        wakeup(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        pool(kSegmentPage, kTestSegment,
             [this](std::size_t offset, std::size_t size) { return segment.populate(offset, size); }) {
    must(wakeup.valid(), "eventfd");
    const slots::BoardLayout layout(wanted.members, wanted.ports);
    for (std::uint32_t i = 0; i < wanted.peer_groups; ++i) {
      boards.push_back(pool.reserve(layout.size()).value());
      status_lines.push_back(pool.reserve_status_lines().value());
    }
  }
  SlotHome(const SlotHome&) = delete;
  SlotHome& operator=(const SlotHome&) = delete;

  Segment segment;
  UserMemory user_memory{kTestSegment};
  Fd wakeup;
  slots::Pool pool;
  std::vector<std::size_t> boards;
  std::vector<std::size_t> status_lines;
};

using SlotHomes = std::vector<std::unique_ptr<SlotHome>>;

// Whether each member maps the memory of the others separately, and what it lends from there.
enum class Mapped : std::uint8_t { once, by_each, by_each_and_lent };

// Maps the memory of another member when that offers it for the third time, so that the first messages are in slots.
class TestPartner final : public slots::LendingPartner {
 public:
  explicit TestPartner(const UserMemory& theirs)
      : view_(Segment::map(theirs.descriptor(), kTestSegment, Segment::Access::read).value()) {
    theirs_.set(view_.data(), view_.size());
  }
  void offer() override { reads_ours_.store(++offers_ >= 3, std::memory_order_release); }

  std::atomic<bool> dead{false};
  std::atomic<bool> frozen{false};

 private:
  Segment view_;
  int offers_ = 0;
};

class LendableResource final : public std::pmr::memory_resource {
 public:
  explicit LendableResource(UserMemory& memory) : memory_(memory) {}

 private:
  void* do_allocate(std::size_t size, std::size_t) override { return memory_.allocate(std::max<std::size_t>(size, 1)).value(); }
  void do_deallocate(void* part, std::size_t, std::size_t) override { must(memory_.free(part)->ok(), "a part"); }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  UserMemory& memory_;
};

class SlotMember final : public PeerGroupMember, private slots::Doorbell {
 public:
  SlotMember(std::shared_ptr<SlotHomes> homes, std::uint32_t index, const PeerGroupsWanted& wanted, Mapped mapped)
      : homes_(std::move(homes)), index_(index), layout_(wanted.members, wanted.ports) {
    static_cast<void>(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0));
    std::vector<std::byte*> at;
    for (std::uint32_t peer = 0; peer < wanted.members; ++peer) {
      const Segment& segment = (*homes_)[peer]->segment;
      if (peer == index || mapped == Mapped::once) {
        at.push_back(segment.data());
      } else {
        views_.push_back(Segment::map(segment.fd(), kTestSegment).value());
        at.push_back(views_.back().data());
      }
    }
    if (mapped == Mapped::by_each_and_lent) {
      lendable_.set(home().user_memory.data(), kTestSegment);
      resource_.emplace(home().user_memory);
    }
    for (std::uint32_t peer = 0; resource_ && peer < wanted.members; ++peer)
      partners_.push_back(std::make_unique<TestPartner>((*homes_)[peer]->user_memory));
    for (std::uint32_t i = 0; i < wanted.peer_groups; ++i) {
      slots::PeerGroupSetup setup;
      if (resource_) setup.lendable = &lendable_;
      setup.own = index;
      setup.ports = wanted.ports;
      setup.pool = &home().pool;
      setup.doorbell = this;
      if (mapped != Mapped::once) setup.room_to_move_on = wanted.room_to_move_on;
      for (std::uint32_t peer = 0; peer < wanted.members; ++peer)
        setup.members.push_back(
            {at[peer], kTestSegment, home().boards[i], home().status_lines[i],
             reinterpret_cast<std::atomic<std::uint32_t>*>(at[peer]), mapped == Mapped::once, 0,
             partners_.empty() ? nullptr : &partners_[peer]->dead, reinterpret_cast<std::atomic<std::uint32_t>*>(at[peer]) + 1,
             partners_.empty() ? nullptr : &partners_[peer]->frozen, partners_.empty() ? nullptr : partners_[peer].get()});
      peer_groups_.push_back(slots::SlotPeerGroup::create(std::move(setup)).value());
    }
  }

  [[nodiscard]] std::uint32_t index() const override { return index_; }
  [[nodiscard]] PeerGroup& peer_group(std::size_t which) override { return *peer_groups_[which]; }
  void close(std::size_t which) override { peer_groups_[which].reset(); }
  [[nodiscard]] std::size_t leased() const override { return (*homes_)[index_]->pool.leased(); }
  [[nodiscard]] std::pmr::memory_resource& lendable_memory() override {
    return resource_ ? *resource_ : PeerGroupMember::lendable_memory();
  }

  // Writers read the word after their store without a fence; the barrier is on this side alone.
  void arm() override {
    armed().store(1, std::memory_order_relaxed);
    must(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0, "membarrier");
  }
  void disarm() override { armed().store(0, std::memory_order_relaxed); }
  bool await_wakeup(int milliseconds) override {
    pollfd wakeup{home().wakeup.get(), POLLIN, 0};
    if (poll(&wakeup, 1, milliseconds) <= 0) return false;
    eventfd_t rung = 0;
    return eventfd_read(wakeup.fd, &rung) == 0;
  }

  void suppose(std::uint32_t other, Supposed state) override {
    (state == Supposed::dead ? partners_[other]->dead : partners_[other]->frozen).store(true);
  }
  void damage(const DamagedStream& stream) override {
    const std::uint32_t target = stream.address.group > 0 ? layout_.members() + stream.address.group - 1 : stream.receiver;
    const std::size_t at = layout_.outgoing(stream.operation % kWindow, stream.address.port, target);
    auto& line = *reinterpret_cast<slots::StreamLine*>(home().segment.data() + home().boards[0] + at);
    // The damage is close to the true value and aligned, so that bounds alone do not detect it. Marks and credit get far values,
    // because close ones come next in any case.
    const std::uint64_t noise = stream.random | 1U;
    const std::uint64_t far = std::uint64_t{1} << 31 | noise;
    switch (stream.damage) {
      case Damage::offset:
        line.slots.offset ^= (noise & 0xff) * slots::kLineSize;
        break;
      case Damage::stride:
        line.slots.stride += static_cast<std::uint32_t>((noise & 7) * slots::kLineSize);
        break;
      case Damage::depth:
        line.depth ^= static_cast<std::uint32_t>(noise & 7);
        break;
      case Damage::digest:
        line.digest ^= static_cast<std::uint32_t>(noise);
        break;
      case Damage::mark:
        line.mark.fetch_add(far);
        break;
      case Damage::done:
        line.done += far;
        break;
    }
  }

  void damage(const DamagedMessage& message) override {
    const std::size_t at = layout_.messages(message.receiver) + message.message % slots::kPairLines * slots::kLineSize;
    auto& line = *reinterpret_cast<slots::PairLine*>(home().segment.data() + home().boards[0] + at);
    const std::uint64_t noise = message.random | 1U;
    switch (message.damage) {
      case PairDamage::mark:
        line.mark.fetch_add(std::uint64_t{1} << 31 | noise);
        break;
      case PairDamage::size:
        line.size ^= noise;
        break;
      case PairDamage::label:
        line.label ^= noise;
        break;
      case PairDamage::verdict:
        line.verdict ^= static_cast<std::uint32_t>(noise);
        break;
      case PairDamage::depth:
        line.depth ^= static_cast<std::uint32_t>(noise & 7);
        break;
      case PairDamage::offset:
        line.slots.offset ^= (noise & 0xff) * slots::kLineSize;
        break;
      case PairDamage::stride:
        line.slots.stride += static_cast<std::uint32_t>((noise & 7) * slots::kLineSize);
        break;
      case PairDamage::first:
        line.slots.first ^= static_cast<std::uint32_t>(noise & 3);
        break;
    }
  }

 private:
  void ring(std::uint32_t member) override { static_cast<void>(eventfd_write((*homes_)[member]->wakeup.get(), 1)); }
  [[nodiscard]] SlotHome& home() { return *(*homes_)[index_]; }
  std::atomic<std::uint32_t>& armed() { return *reinterpret_cast<std::atomic<std::uint32_t>*>(home().segment.data()); }

  std::shared_ptr<SlotHomes> homes_;
  std::uint32_t index_;
  slots::BoardLayout layout_;
  std::vector<Segment> views_;
  slots::LendableMemory lendable_;
  std::optional<LendableResource> resource_;  // empty: this member lends by address, or not at all
  std::vector<std::unique_ptr<TestPartner>> partners_;
  std::vector<std::unique_ptr<slots::SlotPeerGroup>> peer_groups_;
};

std::shared_ptr<SlotHomes> homes_for(const PeerGroupsWanted& wanted) {
  auto homes = std::make_shared<SlotHomes>();
  for (std::uint32_t i = 0; i < wanted.members; ++i) homes->push_back(std::make_unique<SlotHome>(wanted));
  return homes;
}

std::vector<std::uint32_t> slot_boundaries() {
  return {slots::kHeadBytes,
          slots::kHeadBytes + slots::kTailBytes,
          slots::kHeadBytes + slots::kTailBytes + 1,
          slots::kInlineSize - 1,
          slots::kInlineSize,
          slots::kInlineSize + 1};
}

class ThreadTransport final : public PeerGroupTransport {
 public:
  ThreadTransport(const char* name, Mapped mapped) : name_(name), mapped_(mapped) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::vector<std::uint32_t> boundaries() const override { return slot_boundaries(); }
  [[nodiscard]] std::vector<std::unique_ptr<PeerGroupMember>> make(const PeerGroupsWanted& wanted) const override {
    const std::shared_ptr<SlotHomes> homes = homes_for(wanted);
    std::vector<std::unique_ptr<PeerGroupMember>> members;
    for (std::uint32_t i = 0; i < wanted.members; ++i) members.push_back(std::make_unique<SlotMember>(homes, i, wanted, mapped_));
    return members;
  }
  [[nodiscard]] bool run(const PeerGroupsWanted& wanted, const Body& body) const override {
    const auto members = make(wanted);
    std::vector<std::thread> threads;
    for (const auto& member : members) threads.emplace_back([&body, &member] { body(*member); });
    for (std::thread& thread : threads) thread.join();
    return true;  // a failed expectation of a thread fails the test by itself
  }

 private:
  const char* name_;
  Mapped mapped_;
};

class ProcessTransport final : public PeerGroupTransport {
 public:
  ProcessTransport(const char* name, Mapped mapped) : name_(name), mapped_(mapped) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::vector<std::uint32_t> boundaries() const override { return slot_boundaries(); }
  [[nodiscard]] std::vector<std::unique_ptr<PeerGroupMember>> make(const PeerGroupsWanted&) const override { return {}; }
  [[nodiscard]] bool run(const PeerGroupsWanted& wanted, const Body& body) const override {
    const std::shared_ptr<SlotHomes> homes = homes_for(wanted);
    std::fflush(nullptr);  // otherwise every child would print the buffered text
    std::vector<testing::ChildProcess> children;
    for (std::uint32_t i = 0; i < wanted.members; ++i)
      children.emplace_back([&, i] {
        SlotMember member(homes, i, wanted, mapped_);
        body(member);
        return true;
      });
    bool passed = true;
    for (testing::ChildProcess& child : children) passed = child.wait() && passed;
    return passed;
  }

 private:
  const char* name_;
  Mapped mapped_;
};

const ThreadTransport kLocal("local", Mapped::once);
const ThreadTransport kSeparate("shm_threads", Mapped::by_each);
const ThreadTransport kLending("shm_threads_lending", Mapped::by_each_and_lent);
const ProcessTransport kProcesses("shm_processes", Mapped::by_each);
const ProcessTransport kLendingProcesses("shm_processes_lending", Mapped::by_each_and_lent);

}  // namespace

std::span<const PeerGroupTransport* const> peer_group_transports() {
  static const auto* const contexts = new std::vector(context_transports());  // lives as long as the tests that use it
  static const auto* const on_first_use = new std::vector(on_first_use_transports());
  static const auto* const all = [] {
    auto* const list =
        new std::vector<const PeerGroupTransport*>{&kLocal,           &kSeparate,        &kProcesses,
                                                   &tcp_transport(1), &tcp_transport(3), &far_tcp_transport(),
                                                   &tls_transport(1), &tls_transport(4), &rdma_transport(Rails::whole)};
    for (const auto* const some : {contexts, on_first_use})
      for (const auto& one : *some) list->push_back(one.get());
    return list;
  }();
  return *all;
}

std::vector<const PeerGroupTransport*> one_thread_transports() { return {&kLocal, &kSeparate}; }

const PeerGroupTransport& lending_by_offset() { return kLending; }

const PeerGroupTransport& lending_by_offset_in_processes() { return kLendingProcesses; }

}  // namespace seto::support
