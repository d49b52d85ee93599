// Links of which a rail reads payloads where they lie: they stay until the device has read them, whatever breaks when.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/named_buffer.h"
#include "tests/support/named_memory_resource.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tcp_rails.h"

namespace seto::tcp {
namespace {

using support::NamedBuffer;
using support::TcpRails;

constexpr std::size_t kFrame = 60'000;

class PinnedFrames : public TcpRails {
 protected:
  void SetUp() override {
    ASSERT_TRUE(open_rail(0));
    ASSERT_TRUE(settle());
    buffer_ = make();
  }
  std::shared_ptr<NamedBuffer> make() {
    auto buffer = std::make_shared<NamedBuffer>(20 * kFrame);
    for (std::byte& each : buffer->bytes) each = static_cast<std::byte>(random_());
    fabric_->count_reads_of(buffer->bytes.data(), buffer->bytes.size());
    return buffer;
  }
  void queue_all(const std::shared_ptr<NamedBuffer>& buffer) {
    const std::lock_guard lock(ends_[0].domain->lock());
    for (std::size_t at = 0; at < buffer->bytes.size(); at += kFrame) {
      Frame frame;
      frame.set_kind(FrameKind::data);
      frame.peer_group = support::kRailsGroup;
      frame.mark = ++mark_;
      frame.length = kFrame;
      const std::byte* const data = buffer->bytes.data() + at;
      ends_[0].link->queue({frame, data, {buffer, &buffer->lender}, &buffer->unwritten});
      expected_[mark_].assign(reinterpret_cast<const char*>(data), kFrame);
    }
    ends_[0].domain->note_output();
  }
  void step(int steps) {
    for (; steps > 0; --steps) fabric_->step();
  }
  bool give_back(const NamedBuffer& buffer) {
    const std::lock_guard lock(ends_[0].domain->lock());
    return buffer.unwritten == 0 && ends_[0].link->give_back(buffer.lender);
  }
  bool recall(const NamedBuffer& buffer) {
    const std::lock_guard lock(ends_[0].domain->lock());
    return ends_[0].link->recall(&buffer.unwritten, buffer.lender);
  }
  // A device that reads it from now on reads this.
  void overwrite(NamedBuffer& buffer) {
    std::fill(buffer.bytes.begin(), buffer.bytes.end(), std::byte{0xdd});
    fabric_->count_reads_of(buffer.bytes.data(), buffer.bytes.size());
  }

  std::shared_ptr<NamedBuffer> buffer_;
  std::map<std::uint64_t, std::string> expected_;
};

TEST_F(PinnedFrames, AreReadOnceAndNeverCopied) {
  queue_all(buffer_);
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(fabric_->bytes_read(), buffer_->bytes.size());
  ASSERT_TRUE(settle());
  EXPECT_FALSE(buffer_->lender.needed());
}

TEST_F(PinnedFrames, AreGivenBackWhenTheDeviceHasReadThem) {
  queue_all(buffer_);
  ends_[0].domain->pump();
  step(60);
  EXPECT_FALSE(recall(*buffer_)) << "it is read";
  EXPECT_FALSE(ends_[0].link->broken());
  fabric_->run();
  EXPECT_FALSE(recall(*buffer_)) << "its report was not taken";
  ends_[0].domain->pump();
  EXPECT_TRUE(recall(*buffer_)) << "although the peer has read nothing";
  overwrite(*buffer_);
  ASSERT_TRUE(settle());
  EXPECT_EQ(fabric_->bytes_read(), 0U);
  // The frames that the rail had taken come as they were, and no others.
  EXPECT_FALSE(ends_[1].frames.whole.empty());
  EXPECT_LT(ends_[1].frames.whole.size(), expected_.size());
  for (const auto& [mark, bytes] : ends_[1].frames.whole) EXPECT_TRUE(bytes == expected_[mark]) << "frame " << mark;
}

// The caller goes on after its call, though the peer does not read.
TEST_F(PinnedFrames, TheCallerDoesNotWaitForThePeer) {
  queue_all(buffer_);
  // The socket takes what the rail has no room for.
  ASSERT_TRUE(support::eventually([&] {
    fabric_->run();
    ends_[0].domain->pump();
    if (on_rails(0)) fabric_->fail_completion(rdma::CompletionStatus::retry_exceeded);
    return give_back(*buffer_);
  }));
  overwrite(*buffer_);
  ASSERT_TRUE(arrive(1, expected_));
}

TEST_F(PinnedFrames, GoOverTheSocketAfterABreak) {
  queue_all(buffer_);
  ends_[0].domain->pump();
  step(60);
  const std::size_t before = fabric_->bytes_read();
  EXPECT_GT(before, 0U);
  fabric_->set_port("a0", 1, rdma::PortState::down);
  ends_[0].domain->prepare_to_sleep();  // takes the event
  ends_[0].domain->pump();
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
  ASSERT_TRUE(support::eventually([&] {
    ends_[0].domain->pump();
    return give_back(*buffer_);
  }));
  EXPECT_EQ(fabric_->bytes_read(), before) << "the device reads nothing any more";
  overwrite(*buffer_);
  ASSERT_TRUE(arrive(1, expected_));
  EXPECT_EQ(fabric_->bytes_read(), 0U);
}

TEST_F(PinnedFrames, EndWithTheLink) {
  queue_all(buffer_);
  ends_[0].domain->pump();
  step(60);
  const std::size_t before = fabric_->bytes_read();
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->break_with(failure(Code::remote_error, "it breaks"));
  }
  EXPECT_FALSE(buffer_->lender.needed());
  EXPECT_TRUE(recall(*buffer_));
  fabric_->run();
  EXPECT_EQ(fabric_->bytes_read(), before);
}

TEST_F(PinnedFrames, EndWhenTheLinkRetires) {
  queue_all(buffer_);
  ends_[0].domain->pump();
  step(60);
  const std::size_t before = fabric_->bytes_read();
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->retire();
  }
  EXPECT_FALSE(buffer_->lender.needed());
  fabric_->run();
  EXPECT_EQ(fabric_->bytes_read(), before);
}

// A device that reports nothing: its rail is given up, and the call ends.
TEST_F(PinnedFrames, ASilentDeviceIsGivenUp) {
  queue_all(buffer_);
  ends_[0].domain->pump();
  ASSERT_TRUE(support::eventually([&] {
    ends_[0].domain->pump();
    return recall(*buffer_);
  }));
  EXPECT_EQ(ends_[0].link->rail(1), nullptr);
  EXPECT_FALSE(ends_[0].link->broken());
}

// At any moment, either rail, either end. A buffer is written over as soon as it is given back, and often before the peer has it.
TEST_F(PinnedFrames, KeepTheirBytesHoweverRailsBreak) {
  const std::uint64_t calls = support::repetitions(60, 20);
  for (std::uint64_t call = 0; call < calls; ++call) {
    for (std::size_t rail = 0; rail < 2; ++rail)
      if (ends_[0].link->wants_rail(1 + rail) || ends_[1].link->wants_rail(1 + rail)) (void)open_rail(rail);
    queue_all(buffer_);
    for (std::size_t turns = random_() % 40; turns > 0; --turns) {
      step(static_cast<int>(random_() % 200));
      ends_[random_() % 2].domain->pump();
    }
    break_a_rail_or_none();
    ASSERT_TRUE(support::eventually([&] {
      step(static_cast<int>(random_() % 200));
      ends_[random_() % 2].domain->pump();
      return give_back(*buffer_);
    })) << "call "
        << call;
    overwrite(*buffer_);
    if (random_() % 2 == 0) buffer_ = make();
    for (std::byte& each : buffer_->bytes) each = static_cast<std::byte>(random_());
  }
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole.size() == expected_.size(); }));
  EXPECT_TRUE(ends_[1].frames.whole == expected_);
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

}  // namespace
}  // namespace seto::tcp
