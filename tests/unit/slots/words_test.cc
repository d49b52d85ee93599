#include "transports/slots/words.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace seto::slots {
namespace {

class Words : public ::testing::Test {
 protected:
  std::unique_ptr<WordLines> lines = std::make_unique<WordLines>();
};

TEST_F(Words, AreReadAsTheyWereWritten) {
  EXPECT_EQ(words_in(*lines), "");
  for (const std::size_t size : {1, 7, 8, 9, 63, 64, 65, 500}) {
    lines = std::make_unique<WordLines>();
    std::string text(size, 'x');
    text.back() = '.';
    put_words(*lines, text);
    EXPECT_EQ(words_in(*lines), text) << size;
  }
}

TEST_F(Words, AreCutOffWhereTheLinesEnd) {
  put_words(*lines, std::string(kMostWords + 1, 'x'));
  EXPECT_EQ(words_in(*lines), std::string(kMostWords, 'x'));
}

TEST_F(Words, OfAnotherProcessAreReadSafely) {
  lines->size_and_check = ~std::uint64_t{0};
  EXPECT_EQ(words_in(*lines), "");
  put_words(*lines, "line\nand \x1b[31m red");
  EXPECT_EQ(words_in(*lines).find_first_of("\n\x1b"), std::string::npos);
}

TEST_F(Words, ThatAreBeingClearedAreEmpty) {
  put_words(*lines, "rank 2 never came");
  lines->text[1] = 0;
  EXPECT_EQ(words_in(*lines), "");
}

// A reader that reads while they are written or cleared gets one complete text or nothing.
TEST_F(Words, AreWholeUnderEveryInterleaving) {
  const std::string texts[] = {"operation 7 did not end in time", std::string(900, 'x')};
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int round = 0; !over; ++round) {
      put_words(*lines, texts[round % 2]);
      std::this_thread::yield();
      if (round % 3 == 0) lines->size_and_check.store(0, std::memory_order_relaxed);
      for (auto& word : lines->text) word.store(0, std::memory_order_relaxed);
    }
  });
  for (int seen[2] = {0, 0}; seen[0] < 1'000 || seen[1] < 1'000;) {
    const std::string words = words_in(*lines);
    if (words.empty()) continue;
    const bool second = words == texts[1];
    EXPECT_TRUE(second || words == texts[0]) << words;
    ++seen[second ? 1 : 0];
  }
  over = true;
  writer.join();
}

}  // namespace
}  // namespace seto::slots
