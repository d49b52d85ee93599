// A sender and a receiver over paths that break, stand still and come back at any byte. Every frame arrives once, with the bytes
// that it had when it was sent, although the sender writes over its memory and the receiver frees its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/seed.h"
#include "transports/resume/acknowledgement_policy.h"
#include "transports/resume/arrivals.h"
#include "transports/resume/retention.h"

namespace seto::resume {
namespace {

constexpr std::uint32_t kPaths = 3;
constexpr std::uint32_t kLongest = 600;
constexpr std::size_t kBlocks = 5;
constexpr std::uint64_t kWindow = 8 * kLongest;
constexpr std::size_t kMostFrames = 64;

struct Header {
  std::uint64_t number = 0;
  std::uint32_t size = 0;
};

// Bytes on their way, in the order in which they were written: a header, or a part of a payload.
struct Part {
  bool is_header = false;
  Header header;
  std::vector<std::byte> bytes;
};

// Frames from blocks of memory that their owner writes over or frees at any time.
class Sender {
 public:
  Sender(std::mt19937_64& random, CopyMemory& copies) : random_(random), kept({kWindow, kMostFrames, 16}, copies) {
    for (Block& block : blocks_) renew(block);
  }

  // The path begins a frame, or writes more of one. False: it has nothing to write.
  bool write(std::uint32_t path, std::deque<Part>& wire, bool may_begin) {
    Writing& writing = writing_[path];
    if (writing.header.number == 0) return begin(path, wire, may_begin);
    const std::uint32_t left = writing.header.size - writing.written;
    const auto part = static_cast<std::uint32_t>(1 + random_() % left);
    const std::byte* const from = kept.payload(writing.header.number) + writing.written;
    wire.push_back({false, {}, {from, from + part}});
    writing.written += part;
    if (writing.written == writing.header.size) writing = {};
    return true;
  }
  void path_broke(std::uint32_t path) {
    writing_[path] = {};
    kept.path_broke(path);
  }
  // A step writes over a part of a block.
  void overwrite() {
    Block& block = blocks_[random_() % kBlocks];
    const std::size_t from = random_() % kLongest;
    const std::size_t size = 1 + random_() % (kLongest - from);
    ASSERT_TRUE(kept.before_write(block.memory.get() + from, size));
    for (std::size_t i = from; i < from + size; ++i) block.memory[i] = static_cast<std::byte>(random_());
  }
  // A call ends, or is aborted: its owner frees the memory.
  void end_call() {
    Block& block = blocks_[random_() % kBlocks];
    ASSERT_TRUE(kept.give_back(*block.lender));
    ASSERT_FALSE(block.lender->needed());
    renew(block);
  }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::shared_ptr<Lender> lender;
  };
  struct Writing {
    Header header;
    std::uint32_t written = 0;
  };

  void renew(Block& block) {
    block.memory = std::make_unique<std::byte[]>(kLongest);
    for (std::size_t i = 0; i < kLongest; ++i) block.memory[i] = static_cast<std::byte>(random_());
    block.lender = std::make_shared<Lender>();
  }
  bool begin(std::uint32_t path, std::deque<Part>& wire, bool may_begin) {
    std::uint64_t number = kept.next_again();
    if (number != 0) {
      kept.sent_again(number, path);
    } else {
      const auto size = static_cast<std::uint32_t>(random_() % (kLongest + 1));
      if (!may_begin || !kept.may_send(size)) return false;
      Block& block = blocks_[random_() % kBlocks];
      const std::byte* const from = block.memory.get() + random_() % (kLongest + 1 - size);
      number = kept.add({0, size}, {from, size, block.lender}, path);
      kept.header(number).number = number;
      expected[number] = {from, from + size};
    }
    wire.push_back({true, kept.header(number), {}});
    if (kept.size(number) > 0) writing_[path] = {kept.header(number), 0};
    return true;
  }

  std::mt19937_64& random_;
  std::array<Block, kBlocks> blocks_;
  std::array<Writing, kPaths> writing_{};

 public:
  Retention<Header> kept;
  std::map<std::uint64_t, std::vector<std::byte>> expected;  // by number, as it was when it was sent
};

// Frees the memory of a frame as soon as it is whole: a copy that writes there later is an error that a sanitizer finds.
class Receiver {
 public:
  void read(std::uint32_t path, const Part& part, std::map<std::uint64_t, std::vector<std::byte>>& expected) {
    Reading& reading = reading_[path];
    if (part.is_header) {
      reading = {part.header, nullptr, 0};
      const Result<Arrivals::Begun> begun = arrivals_.begin(path, part.header.number);
      ASSERT_TRUE(begun.ok()) << begun.status().text();
      if (begun.value().action == Arrivals::Action::place) {
        ASSERT_EQ(placed_.count(part.header.number), 0U) << "it was placed twice";
        reading.at = (placed_[part.header.number] = std::make_unique<std::byte[]>(part.header.size)).get();
      } else if (begun.value().action == Arrivals::Action::join) {
        reading.at = reading_[begun.value().with].at;
      }
    } else {
      if (reading.at != nullptr) std::memcpy(reading.at + reading.got, part.bytes.data(), part.bytes.size());
      reading.got += static_cast<std::uint32_t>(part.bytes.size());
    }
    if (reading.got == reading.header.size) complete(path, expected);
  }
  void path_broke(std::uint32_t path) {
    const Arrivals::Half half = arrivals_.path_broke(path);
    if (half.abandoned) placed_.erase(half.number);
    reading_[path] = {};
    policy.tell_again();
  }
  [[nodiscard]] Heard heard() const { return arrivals_.heard(); }

  AcknowledgementPolicy policy{kWindow};

 private:
  struct Reading {
    Header header;
    std::byte* at = nullptr;
    std::uint32_t got = 0;
  };

  void complete(std::uint32_t path, std::map<std::uint64_t, std::vector<std::byte>>& expected) {
    const Arrivals::Completed completed = arrivals_.complete(path);
    const Header header = std::exchange(reading_[path], {}).header;
    if (!completed.counts) return policy.tell_again();
    for (std::uint32_t other = 0; other < kPaths; ++other)
      if ((completed.turn_away >> other & 1) != 0) reading_[other].at = nullptr;
    policy.arrived(header.size, 0);
    const auto sent = expected.find(header.number);
    ASSERT_NE(sent, expected.end()) << "frame " << header.number << " counts twice";
    ASSERT_EQ(sent->second.size(), header.size);
    ASSERT_TRUE(std::equal(sent->second.begin(), sent->second.end(), placed_[header.number].get())) << "frame " << header.number;
    placed_.erase(header.number);
    expected.erase(sent);
  }

  Arrivals arrivals_{kMostFrames};
  std::array<Reading, kPaths> reading_{};
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> placed_;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  void step(bool quiet) {
    const auto path = static_cast<std::uint32_t>(random_() % kPaths);
    switch (random_() % (quiet ? 8 : 13)) {
      case 0:
      case 1:
      case 2:
        (void)sender.write(path, wires_[path], !quiet);
        break;
      case 3:
      case 4:
      case 5:
        if (wires_[path].empty()) break;
        receiver.read(path, wires_[path].front(), sender.expected);
        wires_[path].pop_front();
        break;
      case 6:
        if (receiver.policy.due(AcknowledgementPolicy::kLongestNs)) acknowledge();
        break;
      case 7:
        deliver(!quiet);
        break;
      case 8:
        sender.overwrite();
        break;
      case 9:
        if (random_() % 4 == 0) sender.end_call();
        break;
      case 10:  // the path stands still: what it took last goes elsewhere, too, and it may go on later
        if (random_() % 8 == 0) sender.kept.path_broke(path);
        break;
      case 11:  // each end sees the break at another moment; a new path with its number exists when both have seen it
        if (random_() % 8 == 0) cut(path);
        break;
      default:
        ASSERT_LE(copies.in_use(), 4 * kWindow);
        break;
    }
  }
  void cut(std::uint32_t path) {
    for (std::size_t left = random_() % 3; left > 0 && !wires_[path].empty(); --left) {
      receiver.read(path, wires_[path].front(), sender.expected);
      wires_[path].pop_front();
    }
    wires_[path].clear();
    sender.path_broke(path);
    receiver.path_broke(path);
    ++cuts;
    if (random_() % 2 == 0) return;  // other paths send first, some of it for nothing
    ASSERT_TRUE(sender.kept.acknowledge(receiver.heard()).ok()) << "as the hello of a new path says";
  }
  void acknowledge() {
    HeardBytes bytes;
    const std::size_t size = encode(receiver.heard(), bytes);
    const Result<Heard> heard = decode_heard(std::span(bytes).first(size));
    ASSERT_TRUE(heard.ok()) << heard.status().text();
    receiver.policy.told();
    under_way_.push_back(heard.value());
  }
  // Over any path: acknowledgements overtake each other, and some are lost.
  void deliver(bool may_be_lost) {
    if (under_way_.empty()) return;
    const auto which = under_way_.begin() + static_cast<std::ptrdiff_t>(random_() % under_way_.size());
    if (may_be_lost && random_() % 4 == 0)
      receiver.policy.tell_again();  // it was lost with a path
    else
      ASSERT_TRUE(sender.kept.acknowledge(*which).ok());
    under_way_.erase(which);
  }

  int cuts = 0;

 private:
  std::mt19937_64 random_;
  std::array<std::deque<Part>, kPaths> wires_;
  std::vector<Heard> under_way_;

 public:
  CopyMemory copies{4 * kWindow};  // sizes are rounded up
  Sender sender{random_, copies};
  Receiver receiver;
};

TEST(Interleavings, EveryFrameArrivesOnceWithItsBytes) {
  const std::uint64_t seed = testing::chosen_seed();
  std::uint64_t frames = 0;
  int cuts = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    World world(seed + round);
    for (int i = 0; i < 4'000; ++i) {
      world.step(false);
      if (HasFatalFailure()) return;
    }
    for (int i = 0; i < 200'000 && !world.sender.kept.all_acknowledged(); ++i) {
      world.step(true);
      if (HasFatalFailure()) return;
    }
    ASSERT_TRUE(world.sender.kept.all_acknowledged());
    ASSERT_TRUE(world.sender.expected.empty());
    ASSERT_EQ(world.copies.in_use(), 0U);
    frames += world.sender.kept.sent();
    cuts += world.cuts;
  }
  EXPECT_GT(frames, 1'000U);
  EXPECT_GT(cuts, 100);
}

}  // namespace
}  // namespace seto::resume
