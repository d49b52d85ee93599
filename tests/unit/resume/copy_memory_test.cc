// Memory of copies: bounded, and used again.

#include "transports/resume/copy_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace seto::resume {
namespace {

TEST(CopyMemory, IsBounded) {
  CopyMemory memory(3 * 1024);
  std::byte* const first = memory.take(1024);
  std::byte* const second = memory.take(1025);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr) << "it uses 2,048 bytes";
  EXPECT_EQ(memory.in_use(), 3 * 1024U);
  EXPECT_EQ(memory.take(1), nullptr);
  memory.give_back(first, 1024);
  std::byte* const third = memory.take(700);
  EXPECT_EQ(third, first) << "what came back is used again";
  memory.give_back(second, 1025);
  memory.give_back(third, 700);
  EXPECT_EQ(memory.in_use(), 0U);
}

TEST(CopyMemory, HasTheLongestPayloadAndNoLonger) {
  CopyMemory memory(2 * kLongestPayload);
  std::byte* const longest = memory.take(kLongestPayload);
  ASSERT_NE(longest, nullptr);
  std::memset(longest, 1, kLongestPayload);
  memory.give_back(longest, kLongestPayload);
  for (std::size_t i = 0; i < kLongestPayload; ++i) ASSERT_EQ(filler()[i], std::byte{0});
}

// Memory of its own, as of a NIC, and what of it is in use.
class OwnBlocks final : public BlockSource {
 public:
  std::byte* allocate(std::size_t size) override {
    if (used_ + size > sizeof memory_) return nullptr;
    used_ += size;
    allocated += size;
    return memory_ + used_ - size;
  }
  void release(std::byte*, std::size_t size) override { allocated -= size; }
  [[nodiscard]] bool holds(const std::byte* block) const { return block >= memory_ && block < memory_ + sizeof memory_; }

  std::size_t allocated = 0;

 private:
  alignas(64) std::byte memory_[2048] = {};
  std::size_t used_ = 0;
};

// The heap, and what of it is in use.
class CountedBlocks final : public BlockSource {
 public:
  std::byte* allocate(std::size_t size) override {
    allocated += size;
    return new std::byte[size];
  }
  void release(std::byte* block, std::size_t size) override {
    allocated -= size;
    delete[] block;
  }
  std::size_t allocated = 0;
};

TEST(CopyMemory, KeepsSomeOfItsBlocksOnly) {
  constexpr std::size_t kBlocks = 200;
  CountedBlocks blocks;
  CopyMemory memory(kBlocks * kLongestPayload, &blocks);
  std::array<std::byte*, kBlocks> taken{};
  for (std::byte*& each : taken) each = memory.take(kLongestPayload);
  EXPECT_EQ(blocks.allocated, kBlocks * kLongestPayload);
  for (std::byte* const each : taken) memory.give_back(each, kLongestPayload);
  EXPECT_EQ(blocks.allocated, std::size_t{32} << 20) << "the rest went back to the source";
}

TEST(CopyMemory, TakesItsBlocksFromASource) {
  OwnBlocks blocks;
  {
    CopyMemory memory(1 << 20, &blocks);
    std::byte* const first = memory.take(1000);
    EXPECT_TRUE(blocks.holds(first));
    std::byte* const second = memory.take(600);
    EXPECT_TRUE(blocks.holds(second));
    EXPECT_EQ(memory.take(1), nullptr) << "the source has no more";
    memory.give_back(first, 1000);
    memory.give_back(second, 600);
    EXPECT_EQ(blocks.allocated, 2048U) << "they are kept for their next use";
  }
  EXPECT_EQ(blocks.allocated, 0U);
}

}  // namespace
}  // namespace seto::resume
