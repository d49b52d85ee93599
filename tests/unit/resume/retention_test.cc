// A sender keeps frames until they are acknowledged.

#include "transports/resume/retention.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace seto::resume {
namespace {

constexpr std::uint32_t kSize = 1'000;
constexpr std::size_t kRoom = std::size_t{1} << 20;

struct Header {
  std::uint64_t number = 0;
};

Heard heard(std::uint64_t all_up_to, std::initializer_list<NumberRange> ranges = {}) {
  Heard heard;
  heard.all_up_to = all_up_to;
  for (const NumberRange& range : ranges) heard.ranges[heard.count++] = range;
  return heard;
}

// A sender whose caller lends one buffer of several payloads.
struct Sender {
  explicit Sender(std::size_t room = kRoom, std::uint32_t at_once = 0) : copies(room), kept({10 * kSize, 16, at_once}, copies) {}

  std::uint64_t send(std::size_t slice, std::uint32_t path = 0) { return kept.add(Header{}, {at(slice), kSize, lender}, path); }
  std::byte* at(std::size_t slice) { return buffer.data() + slice * kSize; }
  void write(std::size_t slice, int value) { std::memset(at(slice), value, kSize); }
  [[nodiscard]] bool sends(std::uint64_t number, int value) const {
    const std::vector<std::byte> expected(kSize, static_cast<std::byte>(value));
    return std::memcmp(kept.payload(number), expected.data(), kSize) == 0;
  }

  std::vector<std::byte> buffer = std::vector<std::byte>(16 * kSize);
  std::shared_ptr<Lender> lender = std::make_shared<Lender>();
  CopyMemory copies;
  Retention<Header> kept;
};

TEST(Retention, PayloadsStayWhereTheyAreLent) {
  Sender sender;
  EXPECT_EQ(sender.send(0), 1U);
  EXPECT_EQ(sender.send(1), 2U);
  EXPECT_EQ(sender.kept.payload(2), sender.at(1));
  EXPECT_EQ(sender.copies.in_use(), 0U);
  EXPECT_TRUE(sender.lender->needed());
  ASSERT_TRUE(sender.kept.acknowledge(heard(2)).ok());
  EXPECT_FALSE(sender.lender->needed());
  EXPECT_TRUE(sender.kept.all_acknowledged());
}

// Memory that only devices read, and its copy on the host.
class OnGpu final : public HostCopy {
 public:
  Result<const std::byte*> bring(const std::byte* place) override {
    ++asked;
    if (!failure_.ok()) return failure_;
    return brought(place);
  }
  [[nodiscard]] const std::byte* brought(const std::byte* place) const override {
    return is_there ? host.data() + (place - memory) : nullptr;
  }
  void fail(Status why) { failure_ = std::move(why); }

  std::byte* const memory = reinterpret_cast<std::byte*>(std::uintptr_t{4'096});  // a read there crashes
  std::vector<std::byte> host = std::vector<std::byte>(2 * kSize, std::byte{7});
  bool is_there = false;
  int asked = 0;

 private:
  Status failure_;
};

TEST(Retention, PayloadsOfAGpuAreCopiedFromTheHostOnceTheyAreThere) {
  Sender sender(kRoom, 2 * kSize);  // host memory would be copied at once
  OnGpu gpu;
  const auto lender = std::make_shared<Lender>(gpu);
  const std::uint64_t number = sender.kept.add(Header{}, {gpu.memory + kSize, kSize, lender}, 0);
  EXPECT_TRUE(sender.kept.on_gpu(number));
  EXPECT_EQ(sender.kept.payload(number), gpu.memory + kSize);
  sender.kept.pin(number);
  EXPECT_FALSE(sender.kept.give_back(*lender)) << "a device reads it";
  EXPECT_EQ(gpu.asked, 0);
  sender.kept.unpin(number);
  EXPECT_FALSE(sender.kept.give_back(*lender));
  EXPECT_TRUE(sender.kept.is_bringing());
  gpu.is_there = true;
  EXPECT_FALSE(sender.kept.on_gpu(number));
  EXPECT_TRUE(sender.kept.is_of_gpu(number)) << "a device may have begun to read it";
  EXPECT_EQ(sender.kept.payload(number), gpu.host.data() + kSize);
  EXPECT_TRUE(sender.kept.give_back(*lender));
  EXPECT_FALSE(lender->needed());
  gpu.host.assign(2 * kSize, std::byte{9});
  EXPECT_TRUE(sender.sends(number, 7));
}

TEST(Retention, PayloadsThatNeverComeFromAGpuSayWhy) {
  Sender sender;
  OnGpu gpu;
  const auto lender = std::make_shared<Lender>(gpu);
  const std::uint64_t number = sender.kept.add(Header{}, {gpu.memory, kSize, lender}, 0);
  gpu.fail(failure(Code::unavailable, "no copy"));
  EXPECT_FALSE(sender.kept.give_back(*lender));
  EXPECT_FALSE(sender.kept.is_bringing());
  EXPECT_EQ(sender.kept.why_not_brought().text(), "no copy");
  EXPECT_FALSE(sender.kept.host_payload(number).ok());
  ASSERT_TRUE(sender.kept.acknowledge(heard(1)).ok());
  EXPECT_FALSE(lender->needed());
}

// In place, a rank lends A, receives B and writes A + B over A.
TEST(Retention, WhatIsOverwrittenIsCopiedBefore) {
  Sender sender;
  sender.write(0, 1);
  sender.write(1, 2);
  (void)sender.send(0);
  (void)sender.send(1);
  ASSERT_TRUE(sender.kept.before_write(sender.at(1), kSize));
  sender.write(1, 9);
  EXPECT_EQ(sender.kept.payload(1), sender.at(0)) << "no step writes there";
  EXPECT_TRUE(sender.sends(2, 2));
  EXPECT_TRUE(sender.lender->needed()) << "by the first frame";
  EXPECT_EQ(sender.copies.in_use(), 1024U);
}

TEST(Retention, AWriteBesideAPayloadCopiesNothing) {
  Sender sender;
  (void)sender.send(1);
  ASSERT_TRUE(sender.kept.before_write(sender.at(0), kSize));
  ASSERT_TRUE(sender.kept.before_write(sender.at(2), kSize));
  EXPECT_EQ(sender.copies.in_use(), 0U);
  ASSERT_TRUE(sender.kept.before_write(sender.at(1) + kSize - 1, 10)) << "its last byte";
  EXPECT_EQ(sender.copies.in_use(), 1024U);
}

TEST(Retention, AtTheEndOfACallTheCallerGetsHisBufferBack) {
  Sender sender;
  sender.write(0, 1);
  sender.write(1, 2);
  (void)sender.send(0);
  (void)sender.send(1);
  ASSERT_TRUE(sender.kept.acknowledge(heard(1)).ok());
  ASSERT_TRUE(sender.kept.give_back(*sender.lender));
  EXPECT_FALSE(sender.lender->needed());
  sender.buffer = {};
  EXPECT_TRUE(sender.sends(2, 2)) << "the caller has freed it";
  EXPECT_EQ(sender.copies.in_use(), 1024U) << "an acknowledged frame needs no copy";
  ASSERT_TRUE(sender.kept.acknowledge(heard(2)).ok());
  EXPECT_EQ(sender.copies.in_use(), 0U);
}

TEST(Retention, OtherCallsKeepTheirMemory) {
  Sender sender;
  const auto other = std::make_shared<Lender>();
  (void)sender.send(0);
  const std::uint64_t number = sender.kept.add(Header{}, {sender.at(1), kSize, other}, 0);
  ASSERT_TRUE(sender.kept.give_back(*sender.lender));
  EXPECT_TRUE(other->needed());
  EXPECT_EQ(sender.kept.payload(number), sender.at(1));
}

TEST(Retention, WithoutMemoryTheOwnerWaits) {
  Sender sender(1024);
  (void)sender.send(0);
  (void)sender.send(1);
  EXPECT_TRUE(sender.kept.before_write(sender.at(0), kSize));
  EXPECT_FALSE(sender.kept.before_write(sender.at(1), kSize));
  EXPECT_FALSE(sender.kept.give_back(*sender.lender));
  ASSERT_TRUE(sender.kept.acknowledge(heard(1)).ok());
  EXPECT_TRUE(sender.kept.before_write(sender.at(1), kSize)) << "the first copy has gone";
}

TEST(Retention, ShortPayloadsAreCopiedAtOnce) {
  Sender sender(kRoom, kSize);
  sender.write(0, 1);
  (void)sender.send(0);
  EXPECT_FALSE(sender.lender->needed());
  sender.write(0, 9);
  EXPECT_TRUE(sender.sends(1, 1));
}

TEST(Retention, TheWindowLimitsWhatIsUnderWay) {
  Sender sender;
  for (std::size_t slice = 0; slice < 10; ++slice) {
    ASSERT_TRUE(sender.kept.may_send(kSize));
    (void)sender.send(slice);
  }
  EXPECT_FALSE(sender.kept.may_send(kSize));
  EXPECT_TRUE(sender.kept.may_send(0)) << "a frame without a payload needs no memory";
  for (int i = 0; i < 6; ++i) (void)sender.kept.add(Header{}, {}, 0);
  EXPECT_FALSE(sender.kept.may_send(0)) << "numbers are limited, too";
  ASSERT_TRUE(sender.kept.acknowledge(heard(1)).ok());
  EXPECT_TRUE(sender.kept.may_send(kSize));
  sender.kept.set_window(1);
  EXPECT_FALSE(sender.kept.may_send(kSize));
  ASSERT_TRUE(sender.kept.acknowledge(heard(16)).ok());
  EXPECT_TRUE(sender.kept.may_send(kSize)) << "a window smaller than a frame must not stop everything";
}

TEST(Retention, RangesReleaseFramesBehindAGap) {
  Sender sender;
  for (std::size_t slice = 0; slice < 6; ++slice) (void)sender.send(slice);
  ASSERT_TRUE(sender.kept.acknowledge(heard(1, {{3, 4}, {6, 6}})).ok());
  EXPECT_TRUE(sender.kept.keeps(2));
  EXPECT_FALSE(sender.kept.keeps(3));
  EXPECT_FALSE(sender.kept.keeps(4));
  EXPECT_TRUE(sender.kept.keeps(5));
  EXPECT_FALSE(sender.kept.keeps(6));
  EXPECT_EQ(sender.kept.bytes(), 2 * kSize);
  EXPECT_EQ(sender.kept.oldest(), 2U);
  ASSERT_TRUE(sender.kept.acknowledge(heard(0)).ok()) << "older news over a slower path";
  ASSERT_TRUE(sender.kept.acknowledge(heard(5)).ok());
  EXPECT_TRUE(sender.kept.all_acknowledged());
  EXPECT_EQ(sender.kept.oldest(), 0U);
}

TEST(Retention, AnAcknowledgementOfUnsentFramesIsRefused) {
  Sender sender;
  (void)sender.send(0);
  EXPECT_FALSE(sender.kept.acknowledge(heard(2)).ok());
  EXPECT_FALSE(sender.kept.acknowledge(heard(0, {{2, ~std::uint64_t{0}}})).ok());
  EXPECT_TRUE(sender.kept.keeps(1)) << "nothing was released";
}

TEST(Retention, OtherPathsTakeWhatABrokenOneTookLast) {
  Sender sender;
  for (std::uint32_t i = 0; i < 6; ++i) (void)sender.send(i, i % 2);
  ASSERT_TRUE(sender.kept.acknowledge(heard(1, {{4, 4}})).ok());
  EXPECT_EQ(sender.kept.next_again(), 0U);
  sender.kept.path_broke(1);
  EXPECT_EQ(sender.kept.next_again(), 2U);
  sender.kept.sent_again(2, 0);
  EXPECT_EQ(sender.kept.next_again(), 6U) << "4 has been acknowledged";
  ASSERT_TRUE(sender.kept.acknowledge(heard(1, {{4, 4}, {6, 6}})).ok());
  EXPECT_EQ(sender.kept.next_again(), 0U) << "it had arrived before the path broke";
  sender.kept.path_broke(0);
  for (const std::uint64_t number : {2U, 3U, 5U}) {
    EXPECT_EQ(sender.kept.next_again(), number);
    sender.kept.sent_again(number, 1);
  }
  EXPECT_EQ(sender.kept.next_again(), 0U);
  EXPECT_EQ(sender.kept.path_of(2), 1U);
}

// A path may owe half of a frame that the peer has had whole from another one.
TEST(Retention, TheRestOfAnAcknowledgedFrameNeedsNoMemory) {
  Sender sender;
  (void)sender.send(0);
  ASSERT_TRUE(sender.kept.acknowledge(heard(1)).ok());
  sender.buffer = {};
  EXPECT_EQ(sender.kept.payload(1), filler());
}

// A NIC reads the payload whenever it likes: nothing can redirect it to a copy.
TEST(Retention, PinnedPayloadsStay) {
  Sender sender;
  (void)sender.send(0);
  (void)sender.send(1);
  sender.kept.pin(1);
  EXPECT_FALSE(sender.kept.before_write(sender.at(0), kSize));
  EXPECT_FALSE(sender.kept.give_back(*sender.lender));
  EXPECT_EQ(sender.kept.payload(1), sender.at(0));
  ASSERT_TRUE(sender.kept.acknowledge(heard(2)).ok());
  EXPECT_TRUE(sender.lender->needed()) << "a second rail may still read it";
  EXPECT_FALSE(sender.kept.all_acknowledged());
  EXPECT_EQ(sender.kept.oldest(), 0U);
  sender.kept.path_broke(0);
  EXPECT_EQ(sender.kept.next_again(), 0U) << "the peer has it";
  sender.kept.unpin(1);
  EXPECT_FALSE(sender.lender->needed());
  EXPECT_TRUE(sender.kept.all_acknowledged());
}

TEST(Retention, WhatIsLeftAtTheEndIsGivenBack) {
  const auto lender = std::make_shared<Lender>();
  std::array<std::byte, kSize> bytes{};
  CopyMemory copies(kRoom);
  {
    Retention<Header> kept({kRoom, 16, 0}, copies);
    (void)kept.add(Header{}, {bytes.data(), kSize, lender}, 0);
    ASSERT_TRUE(kept.give_back(*lender));
    (void)kept.add(Header{}, {bytes.data(), kSize, lender}, 0);
  }
  EXPECT_FALSE(lender->needed());
  EXPECT_EQ(copies.in_use(), 0U);
}

}  // namespace
}  // namespace seto::resume
