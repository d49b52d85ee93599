// Messages of streams that lie in memory of a GPU: addresses that are mapped nowhere, which only RDMA devices read.

#include "tests/support/gpu_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/context_peer_groups.h"
#include "tests/support/flows.h"
#include "tests/support/sanitizers.h"
#include "transports/optional_streams.h"

namespace seto::support {
namespace {

// A message of two parts with a gap, each of several frames, and the last frame of a part is short.
constexpr std::size_t kPart = 70'000, kGap = 3'000, kMessage = 2 * kPart;
constexpr StreamGeometry kGeometry{kMessage, 4, 6, 9};

// The kernel of a member: it fills one message in memory of its GPU, and another one there only when that is given back.
class Sender {
 public:
  Sender(PeerGroup& group, std::uint32_t own, std::uint32_t peer)
      : stream_(group.open_send({own, 0, 0}, std::vector{peer}, kGeometry).value()),
        messages_(std::make_shared<GpuMessages>(kMessage + kGap, std::vector<std::string>{"host" + std::to_string(own)})) {}

  // True: the slice has left the memory.
  bool send(Mark mark, std::uint64_t key) {
    (void)stream_->handed_over(operation_of(mark));  // makes progress
    GpuSender& gpu = *stream_->from_gpu();
    if (!is_filled_) fill(key);
    if (!is_sent_) {
      const GpuSender::Part parts[] = {{messages_->begin(), kPart}, {messages_->begin() + kPart + kGap, kPart}};
      reads_ += gpu.reads(messages_->begin(), messages_->size()) ? 1 : 0;
      is_sent_ = gpu.send_parts(mark, parts, messages_);
      polls_ = 0;
    }
    // A receiver acknowledges at once; only sometimes is it not waited for.
    if (!is_sent_ || !(gpu.is_free(mark) || (++polls_ > patience_ && gpu.give_back(mark)))) return false;
    messages_->forget();
    messages_->write(std::vector<std::byte>(kMessage + kGap, std::byte{0xdd}));
    return !(is_filled_ = is_sent_ = false);
  }
  void give_back_after(std::uint64_t polls) { patience_ = polls; }
  [[nodiscard]] std::size_t copies() const { return messages_->copies(); }
  [[nodiscard]] std::size_t reads() const { return reads_; }

 private:
  void fill(std::uint64_t key) {
    std::vector<std::byte> bytes(kMessage);
    write_pattern(bytes.data(), bytes.size(), key);
    bytes.insert(bytes.begin() + kPart, kGap, std::byte{0xee});
    messages_->write(bytes);
    is_filled_ = true;
  }

  const std::unique_ptr<SendStream> stream_;
  const std::shared_ptr<GpuMessages> messages_;
  bool is_filled_ = false, is_sent_ = false;
  std::uint64_t polls_ = 0, patience_ = ~std::uint64_t{0};
  std::size_t reads_ = 0;
};

std::uint64_t key_of(std::uint32_t sender, Mark mark) { return mixed(sender) ^ mixed(mark); }

// Each of two members sends to the other one, and receives. Returns whether all operations have ended.
bool exchange(PeerGroup& group, std::uint32_t own, Sender& sender, std::uint64_t operations) {
  const auto receive = group.open_receive({1 - own, 0, 0}, kGeometry).value();
  for (std::uint64_t operation = 1; operation <= operations; ++operation) {
    group.status().begin({operation, 0, 0, {}});
    std::uint64_t sent = 0, received = 0;
    const bool ended = eventually([&] {
      const Mark out = mark_of(operation, sent), in = mark_of(operation, received);
      if (sent < kGeometry.slices && sender.send(out, key_of(own, out))) ++sent;
      const std::byte* const message = received < kGeometry.slices ? receive->front(in) : nullptr;
      if (message != nullptr) {
        EXPECT_TRUE(has_pattern(message, kMessage, key_of(1 - own, in))) << "mark " << in;
        receive->release(in);
        ++received;
      }
      return sent == kGeometry.slices && received == kGeometry.slices;
    });
    EXPECT_TRUE(ended) << "operation " << operation << " never ended: " << group.failure().text();
    if (!ended) return false;
    group.complete(operation);
  }
  return group.failure().ok();
}

TEST(GpuMessagesOverRails, AreReadByDevicesAndByNothingElse) {
  const std::uint64_t operations = repetitions(20, 5);
  EXPECT_TRUE(rdma_transport(Rails::whole).run({.members = 2}, [](PeerGroupMember& member) {
    Sender sender(member.peer_group(), member.index(), 1 - member.index());
    EXPECT_TRUE(exchange(member.peer_group(), member.index(), sender, operations));
    EXPECT_GT(sender.reads(), 0U);
    EXPECT_EQ(sender.copies(), 0U) << "the CPU and the driver have touched none of them";
  }));
}

TEST(GpuMessagesOverRails, KeepTheirBytesWhereRailsBreak) {
  const std::uint64_t operations = repetitions(40, 10);
  EXPECT_TRUE(rdma_transport(Rails::cut).run({.members = 2}, [](PeerGroupMember& member) {
    Sender sender(member.peer_group(), member.index(), 1 - member.index());
    sender.give_back_after(50);
    EXPECT_TRUE(exchange(member.peer_group(), member.index(), sender, operations));
  }));
}

}  // namespace
}  // namespace seto::support
