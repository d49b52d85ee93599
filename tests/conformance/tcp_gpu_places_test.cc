// Payloads in memory of a GPU that a rail writes where their receiver wants them: the device reads them there, and the CPU never.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/gpu_messages.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tcp_places.h"

namespace seto::tcp {
namespace {

using support::GpuFrames;
using support::kAll;
using support::kSlice;
using support::kSlices;

class GpuPlaces : public support::TcpPlaces {
 protected:
  // `devices`: that read memory of the GPU.
  std::shared_ptr<GpuFrames> make(const std::vector<std::string>& devices = {"a0", "a1"}) {
    auto made = std::make_shared<GpuFrames>(kAll, devices);
    fill_gpu(*made);
    return made;
  }
  void fill_gpu(GpuFrames& frames) {
    fill(source_.bytes);  // what the receiver shall have
    frames.messages.write(source_.bytes);
    frames.messages.forget();
    fabric_->count_reads_of(frames.messages.begin(), frames.messages.size());
  }
  void send_from(const std::shared_ptr<GpuFrames>& frames) {
    send_of(frames->messages.begin(), {frames, &frames->lender}, &frames->unwritten);
  }
  [[nodiscard]] bool gpu_given_back(const GpuFrames& frames) {
    const std::lock_guard lock(ends_[0].domain->lock());
    return frames.unwritten == 0 && ends_[0].link->give_back(frames.lender);
  }
};

TEST_F(GpuPlaces, PayloadsAreWrittenThereFromTheGpu) {
  const auto frames = make();
  tell();
  send_from(frames);
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_read(), kAll);
  EXPECT_EQ(fabric_->bytes_written(), kAll);
  EXPECT_EQ(frames->messages.copies(), 0U);
  expect_right();
  end();
  ASSERT_TRUE(settle());
  EXPECT_FALSE(frames->lender.needed());
}

// Neither is the address of the GPU given to a device that does not read it, nor its copy to one that does not know that.
TEST_F(GpuPlaces, TravelAsBytesFromTheHostWhereTheDeviceDoesNotReadThem) {
  const auto frames = make({"a1"});
  frames->messages.bring_after(3);
  tell();
  send_from(frames);
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_read(), 0U);
  EXPECT_EQ(fabric_->bytes_written(), 0U);
  EXPECT_EQ(frames->messages.copies(), 1U);
  expect_right();
  end();
}

// The rest of a message of which the rail has written a part comes from the host over the socket, and what is late in the network
// finds no queue pair.
TEST_F(GpuPlaces, ComeFromTheHostAfterABreak) {
  const auto frames = make();
  tell();
  send_from(frames);
  ends_[0].domain->pump();
  step(300);
  EXPECT_FALSE(is_clear()) << "writes are under way";
  frames->messages.bring_after(5);
  fabric_->set_port("a0", 1, rdma::PortState::down);
  ends_[0].domain->prepare_to_sleep();  // takes the event
  ends_[0].domain->pump();
  const std::size_t before = fabric_->bytes_read();
  ASSERT_TRUE(run_until([&] { return all_whole(); }));
  EXPECT_EQ(fabric_->bytes_read(), before) << "the device reads nothing any more";
  EXPECT_EQ(frames->messages.copies(), 1U);
  expect_right();
  end();
  EXPECT_EQ(fabric_->land_packets(), 0U);
  EXPECT_TRUE(is_clear());
}

// A receiver that places names memory of the host only: nothing would flush what comes into a GPU.
TEST_F(GpuPlaces, NoPlaceIsOpenedInAGpu) {
  const support::GpuMessages target(kAll, {"b0", "b1"});
  Placement placement;
  placement.operation = operation_;
  placement.first = target.begin();
  placement.stride = kSlice;
  placement.size = kAll;
  placement.until = kSlices;
  const std::lock_guard lock(ends_[1].domain->lock());
  EXPECT_FALSE(ends_[1].link->tell_place(frame(), placement));
}

// At any moment, either end, calls that fail, copies that take any time. Both ends write over their memory once it is theirs.
TEST_F(GpuPlaces, KeepTheirBytesHoweverRailsBreak) {
  const auto frames = make();
  const std::uint64_t calls = support::repetitions(40, 10);
  std::size_t in_place = 0;
  for (std::uint64_t call = 0; call < calls; ++call) {
    for (std::size_t rail = 0; rail < 2; ++rail)
      if (ends_[0].link->wants_rail(1 + rail) || ends_[1].link->wants_rail(1 + rail)) (void)open_rail(rail);
    if (random_() % 4 != 0) want();
    ASSERT_TRUE(random_() % 4 == 0 || settle());
    send_from(frames);
    frames->messages.bring_after(random_() % 5);
    for (std::size_t turns = random_() % 60; turns > 0; --turns) {
      step(random_() % 300);
      ends_[random_() % 2].domain->pump();
    }
    break_a_rail_or_none();
    const auto go_on_until = [&](const auto& condition) {
      return support::eventually([&] {
        step(random_() % 300);
        ends_[random_() % 2].domain->pump();
        return condition();
      });
    };
    if (random_() % 4 == 0) {
      displace();
    } else {
      ASSERT_TRUE(go_on_until([&] { return all_whole(); })) << "call " << call;
      expect_right();
      in_place += fabric_->bytes_written();
      end();
    }
    ASSERT_TRUE(go_on_until([&] { return gpu_given_back(*frames); })) << "call " << call;
    (void)fabric_->land_packets();
    EXPECT_TRUE(is_clear()) << "call " << call;
    frames->messages.write(std::vector<std::byte>(kAll, std::byte{0xdd}));
    fill_gpu(*frames);
  }
  ASSERT_TRUE(settle());
  EXPECT_GT(in_place, 0U) << "no call was written in place";
  EXPECT_FALSE(ends_[0].link->broken() || ends_[1].link->broken());
}

}  // namespace
}  // namespace seto::tcp
