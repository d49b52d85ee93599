#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/named_buffer.h"
#include "tests/support/tcp_rails.h"
#include "transports/tcp/streams/inbox.h"

namespace seto::support {

using tcp::Frame;
using tcp::InStream;

inline constexpr std::uint64_t kPlacesGroup = 8;
inline constexpr std::size_t kSlice = 150'000;  // several frames, and the last one is shorter
inline constexpr std::size_t kSlices = 5;
inline constexpr std::size_t kAll = kSlice * kSlices - 20'000;
inline constexpr std::uint32_t kDigest = 77;

// The receiver of one stream, as a communicator has it.
class StreamSink final : public tcp::Sink {
 public:
  void begin(tcp::ReceiveShare& share) { stream_ = std::make_unique<InStream>(share, tcp::kMostAhead); }
  Result<std::byte*> place(std::uint32_t, const Frame& frame) override {
    SETO_ASSIGN(const InStream::Placed placed, stream_->place(frame, done_));
    return placed.at;
  }
  Status arrived(std::uint32_t, const Frame& frame, std::byte* at) override {
    if (at != nullptr) stream_->arrived(frame, at);
    return {};
  }
  void unplace(std::uint32_t, const Frame& frame, std::byte* at) override { stream_->unplace(frame, at); }
  [[nodiscard]] InStream& stream() { return *stream_; }
  void end(std::uint64_t operation) { done_ = operation; }

 private:
  std::unique_ptr<InStream> stream_;
  std::uint64_t done_ = 0;
};

// A link whose second end wants the slices of a stream in a place of its own, which rails of the first end write.
class TcpPlaces : public TcpRails {
 protected:
  void SetUp() override {
    for (std::size_t end = 0; end < 2; ++end) {
      const std::lock_guard lock(ends_[end].domain->lock());
      sinks_[end].begin(ends_[end].link->share());
      ends_[end].link->enter(kPlacesGroup, sinks_[end], 0, 0);
    }
    ASSERT_TRUE(open_rail(0));
    ASSERT_TRUE(settle());
    fabric_->keep_packets();
    fill(source_.bytes);
    clear();
  }
  void TearDown() override {
    for (RailEnd& end : ends_) {
      const std::lock_guard lock(end.domain->lock());
      end.link->leave(kPlacesGroup);
    }
  }
  void fill(std::vector<std::byte>& bytes) {
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_());
  }
  // The memory of the receiver is its own.
  void clear() {
    std::fill(target_.bytes.begin(), target_.bytes.end(), std::byte{0xca});
    fabric_->count_writes_to(target_.bytes.data(), target_.bytes.size());
  }
  [[nodiscard]] bool is_clear() const {
    return std::all_of(target_.bytes.begin(), target_.bytes.end(), [](std::byte each) { return each == std::byte{0xca}; });
  }
  [[nodiscard]] Frame frame(std::uint32_t digest = kDigest) const {
    Frame frame;
    frame.peer_group = kPlacesGroup;
    frame.digest = digest;
    return frame;
  }
  // The receiver wants the operation in its place.
  void want(std::uint64_t until = kSlices, std::uint32_t digest = kDigest) {
    Placement placement;
    placement.operation = operation_;
    placement.first = target_.bytes.data();
    placement.stride = kSlice;
    placement.size = kAll;
    placement.until = until;
    sinks_[1].stream().want(placement, digest);
    const std::lock_guard lock(ends_[1].domain->lock());
    (void)ends_[1].link->tell_place(frame(digest), placement);
    ends_[1].domain->note_output();
  }
  // The other end has heard of it.
  void tell() {
    want();
    ASSERT_TRUE(settle());
  }
  void send(std::size_t from = 0, std::size_t to = kSlices) {
    send_of(source_.bytes.data(), {owner_, &source_.lender}, &source_.unwritten, from, to);
  }
  void send_of(const std::byte* first, const std::shared_ptr<resume::Lender>& lender, tcp::Unwritten* unwritten,
               std::size_t from = 0, std::size_t to = kSlices) {
    const std::lock_guard lock(ends_[0].domain->lock());
    for (std::size_t slice = from; slice < to; ++slice) {
      const std::size_t size = std::min(kSlice, kAll - slice * kSlice);
      Frame one = frame();
      one.set_kind(FrameKind::data);
      one.mark = mark_of(operation_, slice);
      one.size = static_cast<std::uint32_t>(size);
      for (std::size_t at = 0; at < size; at += one.length) {
        one.offset = static_cast<std::uint32_t>(at);
        one.length = static_cast<std::uint32_t>(std::min(tcp::kStripe, size - at));
        ends_[0].link->queue({one, first + slice * kSlice + at, lender, unwritten});
      }
    }
    ends_[0].domain->note_output();
  }
  [[nodiscard]] InStream::Message* whole(std::size_t slice) { return sinks_[1].stream().whole(mark_of(operation_, slice)); }
  [[nodiscard]] bool all_whole() {
    for (std::size_t slice = 0; slice < kSlices; ++slice)
      if (whole(slice) == nullptr) return false;
    return true;
  }
  void expect_right() {
    for (std::size_t slice = 0; slice < kSlices; ++slice)
      EXPECT_EQ(std::memcmp(whole(slice)->data, source_.bytes.data() + slice * kSlice, whole(slice)->size), 0) << slice;
  }
  // The call of the receiver ends well, and the next one may begin. Its memory is its own.
  void end() {
    {
      const std::lock_guard lock(ends_[1].domain->lock());
      for (std::size_t slice = 0; slice < kSlices; ++slice) {
        sinks_[1].stream().drop(mark_of(operation_, slice));
        ends_[1].link->end_place(frame(), mark_of(operation_, slice));
      }
    }
    next();
  }
  // It ends badly.
  void displace() {
    {
      const std::lock_guard lock(ends_[1].domain->lock());
      const Placement over = sinks_[1].stream().displace(operation_);
      if (over.size > 0) ends_[1].link->turn_away(over.first, over.size);
      sinks_[1].stream().forget_before(operation_);
    }
    next();
  }
  // A call that ends well, of which the device writes each byte once.
  void call_in_place() {
    tell();
    send();
    ASSERT_TRUE(run_until([&] { return all_whole(); }));
    EXPECT_EQ(fabric_->bytes_written(), kAll);
    expect_right();
    end();
  }
  void next() {
    sinks_[1].end(operation_++);
    clear();
  }
  void step(std::size_t steps) {
    for (; steps > 0; --steps) fabric_->step();
  }
  // The sender may use its memory again.
  [[nodiscard]] bool given_back() {
    const std::lock_guard lock(ends_[0].domain->lock());
    return source_.unwritten == 0 && ends_[0].link->give_back(source_.lender);
  }

  StreamSink sinks_[2];
  NamedBuffer source_{kAll};
  NamedBuffer target_{kAll};
  const std::shared_ptr<int> owner_ = std::make_shared<int>();
  std::uint64_t operation_ = 1;
};

}  // namespace seto::support
