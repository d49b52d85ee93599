// Messages from memory that has a name, which RDMA devices read where it lies, into memory that has a name too.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "tests/support/context_peer_groups.h"
#include "tests/support/flows.h"
#include "tests/support/named_memory_resource.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/optional_streams.h"

namespace seto::support {
namespace {

using Bytes = std::pmr::vector<std::byte>;

// Several frames a message, and some that are short.
constexpr StreamGeometry kGeometry{150'000, 2, 4, 5};
constexpr std::size_t kAll = std::size_t{150'000} * 4;
constexpr std::size_t kGuard = 4'096;
constexpr std::byte kCanary{0xca};

bool is_untouched(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte each) { return each == kCanary; });
}

// A member sends to the next one and receives from the one before. Buffers belong to a call until it ends: then both are written
// over, and neither a device that reads late nor a write that comes late may be there.
class Call {
 public:
  explicit Call(PeerGroupMember& member) : group_(member.peer_group()) {
    const std::uint32_t own = member.index(), count = group_.members();
    const std::uint32_t next = (own + 1) % count, before = (own + count - 1) % count;
    send_ = group_.open_send({own, 0, 0}, std::vector{next}, kGeometry).value();
    receive_ = group_.open_receive({before, 0, 0}, kGeometry).value();
    sender_ = own;
    from_ = before;
  }
  [[nodiscard]] bool run(std::uint64_t operation) {
    EXPECT_TRUE(is_untouched(output_)) << "a write came after the end of operation " << operation - 1;
    group_.status().begin({operation, 0, 0, {}});
    Placement placement{operation, place(), kGeometry.slot_size, kAll, kGeometry.slices};
    receive_->placing()->place(placement);
    for (std::uint64_t slice = 0; slice < kGeometry.slices; ++slice)
      write_pattern(input_.data() + slice * kGeometry.slot_size, kGeometry.slot_size, key(sender_, mark_of(operation, slice)));
    std::uint64_t sent = 0, received = 0;
    const bool ended = eventually([&] {
      if (sent < kGeometry.slices && lender().lend(mark_of(operation, sent), input_.data(), kGeometry.slot_size))
        send_->commit(mark_of(operation, sent++), kGeometry.slot_size);
      received += receive(mark_of(operation, received), received < kGeometry.slices);
      return received == kGeometry.slices && sent == kGeometry.slices && lender().taken(operation);
    });
    EXPECT_TRUE(ended) << "operation " << operation << " never ended: " << group_.failure().text();
    EXPECT_TRUE(is_untouched(std::span(output_).first(kGuard)) && is_untouched(std::span(output_).last(kGuard)));
    std::fill(input_.begin(), input_.end(), std::byte{0xee});
    std::fill(output_.begin(), output_.end(), kCanary);
    if (ended) group_.complete(operation);
    return ended && group_.failure().ok();
  }

 private:
  [[nodiscard]] static std::uint64_t key(std::uint32_t sender, Mark mark) { return mixed(sender) ^ mixed(mark); }
  [[nodiscard]] LendingSender& lender() const { return *send_->lending(); }
  [[nodiscard]] std::byte* place() { return output_.data() + kGuard; }
  [[nodiscard]] std::uint64_t receive(Mark mark, bool wanted) {
    const std::byte* const message = wanted ? receive_->front(mark) : nullptr;
    if (message == nullptr) return 0;
    EXPECT_TRUE(has_pattern(message, kGeometry.slot_size, key(from_, mark))) << "mark " << mark;
    receive_->release(mark);
    return 1;
  }

  PeerGroup& group_;
  NamedMemoryResource resource_;
  Bytes input_{kAll, &resource_};
  Bytes output_{kAll + 2 * kGuard, kCanary, &resource_};
  std::unique_ptr<SendStream> send_;
  std::unique_ptr<ReceiveStream> receive_;
  std::uint32_t sender_ = 0, from_ = 0;
};

class NamedMemoryOver : public ::testing::TestWithParam<const PeerGroupTransport*> {};

TEST_P(NamedMemoryOver, ReturnsToItsOwnerWithItsCall) {
  const std::uint64_t operations = repetitions(30, 10);
  EXPECT_TRUE(GetParam()->run({.members = 3}, [operations](PeerGroupMember& member) {
    Call call(member);
    for (std::uint64_t operation = 1; operation <= operations; ++operation)
      if (!call.run(operation)) return;
  }));
}

// The names that there are, and the most that there were.
class Names final : public NamedMemory::User {
 public:
  Names() { NamedMemory::of_process().enter(*this); }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() override { NamedMemory::of_process().leave(*this); }
  void named(NamedMemory::Name, std::byte*, std::size_t) override { most = std::max(most, ++now); }
  void unnamed(NamedMemory::Name) override { --now; }
  std::size_t now = 0, most = 0;
};

// Slots have names too, as long as their streams.
TEST_P(NamedMemoryOver, SlotsAreNamed) {
  const Names names;
  const std::size_t before = names.now;
  EXPECT_TRUE(GetParam()->run({.members = 2}, [](PeerGroupMember& member) {
    PeerGroup& group = member.peer_group();
    const std::uint32_t own = member.index();
    std::vector<Flow> flows;
    flows.push_back(sending(group, {own, 0, 0}, {1 - own}, kGeometry));
    flows.push_back(receiving(group, own, {1 - own, 0, 0}, kGeometry));
    for (std::uint64_t operation = 1; operation <= 20; ++operation)
      if (!operate(group, flows, operation)) return;
  }));
  EXPECT_GT(names.most, before);
  EXPECT_EQ(names.now, before);
}

std::string name_of(const ::testing::TestParamInfo<const PeerGroupTransport*>& info) { return info.param->name(); }

INSTANTIATE_TEST_SUITE_P(All, NamedMemoryOver,
                         ::testing::Values(&rdma_transport(Rails::whole), &rdma_transport(Rails::cut),
                                           &rdma_transport(Rails::first_use), &cut_rails_transport()),
                         name_of);

}  // namespace
}  // namespace seto::support
