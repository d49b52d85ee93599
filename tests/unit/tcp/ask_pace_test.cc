// How often a member that waits asks for the status record of another one.

#include "transports/tcp/streams/ask_pace.h"

#include <gtest/gtest.h>

namespace seto::tcp {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kBegin = 1'000 * kMs;
constexpr std::uint64_t kLongest = 10 * kMs;

// Looks every 100 us, as a waiting task does at least, and answers at once. The questions within that time.
int questions(AskPace& pace, std::uint64_t from, std::uint64_t time, std::uint64_t done, bool answers, bool news = false) {
  int count = 0;
  for (std::uint64_t now = from; now < from + time; now += kMs / 10) {
    if (!pace.asks(now, done, kLongest)) continue;
    ++count;
    if (answers) pace.hear(news);
  }
  return count;
}

TEST(AskPace, AnswersThatBringNothingNewAreAskedForEverMoreRarely) {
  AskPace pace;
  // 0, 1, 3, 7 and 15 ms, then every 10 ms.
  EXPECT_EQ(questions(pace, kBegin, 16 * kMs, 0, true), 5);
  EXPECT_NEAR(questions(pace, kBegin + 16 * kMs, 1'000 * kMs, 0, true), 100, 2);
}

TEST(AskPace, NewsAreFollowedAtOnce) {
  AskPace pace;
  EXPECT_EQ(questions(pace, kBegin, 10 * kMs, 0, true, true), 20);
}

TEST(AskPace, ALaterOperationBeginsAnew) {
  AskPace pace;
  (void)questions(pace, kBegin, 1'000 * kMs, 7, true);
  const std::uint64_t later = kBegin + 1'001 * kMs;
  EXPECT_EQ(questions(pace, later, 3 * kMs, 7, true), 0) << "no operation has ended";
  EXPECT_EQ(questions(pace, later, 3 * kMs, 8, true), 2) << "at 0 and 1 ms";
}

TEST(AskPace, SilenceIsNotAnsweredByMoreQuestions) {
  AskPace pace;
  // 0, 20, 60, 140, 300 and 620 ms, then every 320 ms.
  EXPECT_EQ(questions(pace, kBegin, 650 * kMs, 0, false), 6);
  EXPECT_NEAR(questions(pace, kBegin + 650 * kMs, 3'200 * kMs, 0, false), 10, 1);
  EXPECT_EQ(questions(pace, kBegin + 4'200 * kMs, 70 * kMs, 1, false), 3) << "after another operation at 0, 20 and 60 ms";
  pace.hear(false);
  EXPECT_GE(questions(pace, kBegin + 7'700 * kMs, 20 * kMs, 1, true), 2) << "it is heard again";
}

TEST(AskPace, TheMoreMembersAskTheLongerIsThePause) {
  EXPECT_EQ(AskPace::longest_pause_ns(2), 2 * kMs);
  EXPECT_EQ(AskPace::longest_pause_ns(64), 16 * kMs);
  EXPECT_EQ(AskPace::longest_pause_ns(10'000), 100 * kMs);
}

}  // namespace
}  // namespace seto::tcp
