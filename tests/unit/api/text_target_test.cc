// How functions of the C API write a text into the caller's memory.

#include "src/api/support/text_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace seto::api {
namespace {

constexpr char kUntouched = '#';

struct Buffer {
  std::array<char, 16> bytes{};
  std::size_t size = 99;

  Buffer() { bytes.fill(kUntouched); }
  [[nodiscard]] Target target(std::size_t capacity) { return {bytes.data(), capacity, &size}; }
};

TEST(TextTarget, GetsWhatFitsWithAFinalZeroAndTheWholeLength) {
  const std::string text = "seven b";
  for (std::size_t capacity = 1; capacity <= 12; ++capacity) {
    Buffer buffer;
    EXPECT_TRUE(write(buffer.target(capacity), text).ok());
    EXPECT_EQ(buffer.size, text.size()) << "the length of all of it, so that the caller can make room";
    EXPECT_EQ(std::string(buffer.bytes.data()), text.substr(0, capacity - 1));
    for (std::size_t at = std::max(capacity, text.size() + 1); at < buffer.bytes.size(); ++at)
      EXPECT_EQ(buffer.bytes.at(at), kUntouched) << "capacity " << capacity << ", byte " << at;
    if (capacity <= text.size()) {
      EXPECT_EQ(buffer.bytes.at(capacity), kUntouched) << "beyond the capacity";
    }
  }
}

TEST(TextTarget, WithoutCapacityIsAQuestionForTheLength) {
  Buffer buffer;
  EXPECT_TRUE(write(buffer.target(0), std::string("text")).ok());
  EXPECT_EQ(buffer.size, 4U);
  EXPECT_EQ(buffer.bytes.front(), kUntouched);
  std::size_t size = 0;
  EXPECT_TRUE(check_target({nullptr, 0, &size}).ok());
  EXPECT_TRUE(write({nullptr, 0, &size}, std::string("text")).ok());
  EXPECT_EQ(size, 4U);
}

TEST(TextTarget, NeedsNoPlaceForTheLength) {
  Buffer buffer;
  EXPECT_TRUE(write({buffer.bytes.data(), 3, nullptr}, std::string("text")).ok());
  EXPECT_STREQ(buffer.bytes.data(), "te");
}

TEST(TextTarget, NamesTheMissingMemory) {
  EXPECT_EQ(check_target({nullptr, 1, nullptr}).code(), Code::invalid_argument);
  EXPECT_EQ(check_target({nullptr, 1, nullptr}).text(), "text: NULL");
}

TEST(TextTarget, OfAFailureIsLeftAlone) {
  Buffer buffer;
  const Status status = write(buffer.target(8), failure(Code::invalid_argument, "topic: 'x' is unknown"));
  EXPECT_EQ(status.text(), "topic: 'x' is unknown");
  EXPECT_EQ(buffer.bytes.front(), kUntouched);
  EXPECT_EQ(buffer.size, 99U);
}

TEST(TextTarget, KeepsAZeroInsideTheText) {
  Buffer buffer;
  EXPECT_TRUE(write(buffer.target(8), std::string("a\0b", 3)).ok());
  EXPECT_EQ(buffer.size, 3U);
  EXPECT_EQ(std::string(buffer.bytes.data(), 4), std::string("a\0b\0", 4));
}

}  // namespace
}  // namespace seto::api
