// Links whose payloads lie in memory of a GPU, which only devices read: addresses that are mapped nowhere, so a CPU that touched
// them would crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/gpu_messages.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tcp_rails.h"

namespace seto::tcp {
namespace {

using support::GpuFrames;
using support::TcpRails;
using ::testing::HasSubstr;

// A frame is read in two records, and the second one holds its last 1,264 bytes only.
constexpr std::size_t kFrame = 34'032;
constexpr std::size_t kFrames = 20;

class GpuFramesOver : public TcpRails {
 protected:
  // `devices`: that read memory of the GPU.
  std::shared_ptr<GpuFrames> make(const std::vector<std::string>& devices = {"a0", "a1"}) {
    auto made = std::make_shared<GpuFrames>(kFrames * kFrame, devices);
    fill(*made);
    return made;
  }
  void fill(GpuFrames& frames) {
    bytes_.resize(kFrames * kFrame);
    for (std::byte& each : bytes_) each = static_cast<std::byte>(random_());
    frames.messages.write(bytes_);
    frames.messages.forget();
    fabric_->count_reads_of(frames.messages.begin(), frames.messages.size());
  }
  void queue_all(const std::shared_ptr<GpuFrames>& frames) {
    const std::lock_guard lock(ends_[0].domain->lock());
    for (std::size_t at = 0; at < bytes_.size(); at += kFrame) {
      Frame frame;
      frame.set_kind(FrameKind::data);
      frame.peer_group = support::kRailsGroup;
      frame.mark = ++mark_;
      frame.length = kFrame;
      ends_[0].link->queue({frame, frames->messages.begin() + at, {frames, &frames->lender}, &frames->unwritten});
      expected_[mark_].assign(reinterpret_cast<const char*>(bytes_.data() + at), kFrame);
    }
    ends_[0].domain->note_output();
  }
  bool rails_read(const GpuFrames& frames) {
    const std::lock_guard lock(ends_[0].domain->lock());
    return ends_[0].link->rails_read(frames.messages.begin(), frames.messages.size());
  }
  bool give_back(const GpuFrames& frames) {
    const std::lock_guard lock(ends_[0].domain->lock());
    return frames.unwritten == 0 && ends_[0].link->give_back(frames.lender);
  }
  bool recall(const GpuFrames& frames) {
    const std::lock_guard lock(ends_[0].domain->lock());
    return ends_[0].link->recall(&frames.unwritten, frames.lender);
  }
  void step(int steps) {
    for (; steps > 0; --steps) fabric_->step();
  }
  void break_rail() {
    fabric_->set_port("a0", 1, rdma::PortState::down);
    ends_[0].domain->prepare_to_sleep();  // takes the event
    ends_[0].domain->pump();
  }
  bool open_and_settle() { return open_rail(0) && settle(); }

  std::vector<std::byte> bytes_;
  std::map<std::uint64_t, std::string> expected_;
};

TEST_F(GpuFramesOver, AreReadByTheDeviceAndNeverCopied) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make();
  EXPECT_TRUE(rails_read(*frames));
  queue_all(frames);
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(fabric_->bytes_read(), frames->messages.size());
  EXPECT_EQ(frames->messages.copies(), 0U);
  ASSERT_TRUE(settle());
  EXPECT_FALSE(frames->lender.needed());
}

TEST_F(GpuFramesOver, ComeToTheHostOnceWithoutARail) {
  const auto frames = make();
  EXPECT_FALSE(rails_read(*frames));
  frames->messages.bring_after(3);
  queue_all(frames);
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(frames->messages.copies(), 1U);
  EXPECT_EQ(fabric_->bytes_read(), 0U);
}

TEST_F(GpuFramesOver, ComeToTheHostForADeviceThatDoesNotReadThem) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make({"a1"});
  EXPECT_FALSE(rails_read(*frames));
  queue_all(frames);
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(frames->messages.copies(), 1U);
  EXPECT_EQ(fabric_->bytes_read(), 0U);
}

TEST_F(GpuFramesOver, ComeToTheHostWhereTheDeviceRefusesTheMemory) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make();
  fabric_->fail(rdma::VerbsCall::register_dma_buf, EINVAL);
  EXPECT_FALSE(rails_read(*frames));
  queue_all(frames);
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(frames->messages.copies(), 1U);
  EXPECT_EQ(fabric_->bytes_read(), 0U);
}

// A rail breaks while it reads: the frames that the peer has not acknowledged go over the socket, from the host.
TEST_F(GpuFramesOver, GoOverTheSocketAfterABreak) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make();
  queue_all(frames);
  ends_[0].domain->pump();
  step(60);
  const std::size_t before = fabric_->bytes_read();
  EXPECT_GT(before, 0U);
  frames->messages.bring_after(5);
  break_rail();
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
  EXPECT_FALSE(rails_read(*frames));
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(fabric_->bytes_read(), before) << "the device reads nothing any more";
  EXPECT_EQ(frames->messages.copies(), 1U);
}

TEST_F(GpuFramesOver, AreGivenBackByACopyWhenThePeerDoesNotRead) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make();
  queue_all(frames);
  ends_[0].domain->pump();
  frames->messages.bring_after(3);
  EXPECT_FALSE(recall(*frames)) << "it is read";
  fabric_->run();
  ends_[0].domain->pump();
  EXPECT_FALSE(recall(*frames)) << "it is on its way to the host";
  EXPECT_FALSE(ends_[0].link->broken());
  ASSERT_TRUE(support::eventually([&] { return recall(*frames); }));
  fill(*frames);  // another message in the same memory
  ASSERT_TRUE(settle());
  EXPECT_EQ(fabric_->bytes_read(), 0U);
  EXPECT_FALSE(ends_[1].frames.whole.empty());
  for (const auto& [mark, bytes] : ends_[1].frames.whole) EXPECT_TRUE(bytes == expected_[mark]) << "frame " << mark;
}

// Nothing else could be sent in their place, so the link breaks with the words of the copy.
TEST_F(GpuFramesOver, BreakTheLinkWhenTheCopyFails) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make();
  queue_all(frames);
  ends_[0].domain->pump();
  step(60);
  frames->messages.bring_after(2, failure(Code::unavailable, "the driver copies nothing"));
  break_rail();
  ASSERT_TRUE(run_until([&] { return ends_[0].link->broken(); }));
  EXPECT_THAT(std::string(ends_[0].link->why().text()), HasSubstr("the driver copies nothing"));
  EXPECT_FALSE(frames->lender.needed());
  EXPECT_TRUE(recall(*frames));
}

TEST_F(GpuFramesOver, BreakTheLinkWhenTheyCannotBeTakenBack) {
  ASSERT_TRUE(open_and_settle());
  const auto frames = make();
  queue_all(frames);
  ends_[0].domain->pump();
  fabric_->run();
  ends_[0].domain->pump();
  frames->messages.bring_after(0, failure(Code::unavailable, "the driver copies nothing"));
  EXPECT_TRUE(recall(*frames));
  EXPECT_TRUE(ends_[0].link->broken());
  EXPECT_FALSE(frames->lender.needed());
}

// At any moment, either rail, either end, copies that take any time. The memory is written over as soon as it is given back.
TEST_F(GpuFramesOver, KeepTheirBytesHoweverRailsBreak) {
  auto frames = make();
  const std::uint64_t calls = support::repetitions(40, 15);
  for (std::uint64_t call = 0; call < calls; ++call) {
    for (std::size_t rail = 0; rail < 2; ++rail)
      if (ends_[0].link->wants_rail(1 + rail) || ends_[1].link->wants_rail(1 + rail)) (void)open_rail(rail);
    if (random_() % 4 == 0) fabric_->fail(rdma::VerbsCall::register_dma_buf, ENOMEM);
    queue_all(frames);
    frames->messages.bring_after(random_() % 5);
    for (std::size_t turns = random_() % 40; turns > 0; --turns) {
      step(static_cast<int>(random_() % 200));
      ends_[random_() % 2].domain->pump();
    }
    break_a_rail_or_none();
    ASSERT_TRUE(support::eventually([&] {
      step(static_cast<int>(random_() % 200));
      ends_[random_() % 2].domain->pump();
      return give_back(*frames);
    })) << "call "
        << call;
    frames->messages.write(std::vector<std::byte>(bytes_.size(), std::byte{0xdd}));
    if (random_() % 2 == 0)
      frames = make();
    else
      fill(*frames);
  }
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole.size() == expected_.size(); }));
  EXPECT_TRUE(ends_[1].frames.whole == expected_);
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

}  // namespace
}  // namespace seto::tcp
