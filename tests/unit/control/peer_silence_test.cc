#include "src/control/liveness/peer_silence.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

using Verdict = PeerSilence::Verdict;

constexpr std::uint64_t kSecond = 1'000'000'000;

// A peer whose process and kernel answer or not, second by second, at the pace of a timer that never stops.
class PeerSilenceTest : public ::testing::Test {
 protected:
  static std::uint64_t clock() { return now_; }

  Verdict second(bool process, bool kernel, bool site_answers = false) {
    now_ += kSecond;
    time_.tick();
    if (process) silence_.received(time_);
    silence_.acknowledged(time_, kernel ? ++bytes_ : bytes_, true, 2 * kSecond);
    rules_.site_answers = site_answers;
    return silence_.verdict(time_, rules_);
  }
  Verdict seconds(int count, bool process, bool kernel, bool site_answers = false) {
    Verdict last = Verdict::alive;
    while (count-- > 0) last = second(process, kernel, site_answers);
    return last;
  }

  static inline std::uint64_t now_ = 100 * kSecond;
  std::uint64_t bytes_ = 0;
  RunningTime time_{kSecond, clock};
  PeerSilence silence_{time_};
  PeerSilence::Rules rules_{5 * kSecond, 60 * kSecond, false};
};

TEST_F(PeerSilenceTest, AProcessThatAnswersIsAlive) { EXPECT_EQ(seconds(100, true, true), Verdict::alive); }

TEST_F(PeerSilenceTest, AFrozenProcessIsLostAfterTheTimeout) {
  seconds(20, true, true);
  EXPECT_EQ(seconds(5, false, true), Verdict::alive);
  EXPECT_EQ(second(false, true), Verdict::lost);
}

TEST_F(PeerSilenceTest, ASiteOfWhichNobodyAnswersIsCutOffUntilPatienceEnds) {
  seconds(20, true, true);
  EXPECT_EQ(seconds(5, false, false), Verdict::alive);
  EXPECT_EQ(second(false, false), Verdict::cut_off);
  EXPECT_EQ(seconds(54, false, false), Verdict::cut_off);
  EXPECT_EQ(second(false, false), Verdict::given_up);
}

// The first ping of the silence is sent after a second of it, and two seconds must pass before its acknowledgement is overdue.
TEST_F(PeerSilenceTest, AShortTimeoutWaitsUntilThePingIsOverdue) {
  rules_.timeout_ns = 2 * kSecond;
  seconds(20, true, true);
  second(false, true);
  EXPECT_EQ(seconds(2, false, false), Verdict::alive) << "silent for too long, but the ping is young";
  EXPECT_EQ(seconds(10, false, false), Verdict::cut_off);
  seconds(20, true, true);
  second(false, true);
  EXPECT_EQ(seconds(2, false, true), Verdict::lost) << "its kernel acknowledges";
}

TEST_F(PeerSilenceTest, AnAnswerEndsIt) {
  seconds(30, false, false);
  EXPECT_EQ(second(true, true), Verdict::alive);
  EXPECT_EQ(seconds(5, false, false), Verdict::alive);
}

// Its kernel answers first, and the process after that.
TEST_F(PeerSilenceTest, AProcessHasTimeToAnswerAfterItsKernel) {
  seconds(30, false, false);
  EXPECT_EQ(seconds(5, false, true), Verdict::cut_off);
  EXPECT_EQ(second(false, true), Verdict::lost) << "it was frozen meanwhile";
}

TEST_F(PeerSilenceTest, AHostWhoseSiteAnswersIsLost) {
  seconds(20, true, true);
  seconds(5, false, false, true);
  EXPECT_EQ(second(false, false, true), Verdict::lost);
}

TEST_F(PeerSilenceTest, WithinASiteASilentProcessIsLost) {
  rules_.patience_ns = 0;
  seconds(5, false, false);
  EXPECT_EQ(second(false, false), Verdict::lost);
}

TEST_F(PeerSilenceTest, AKernelThatOwesNothingIsNotLate) {
  for (int i = 0; i < 20; ++i) {
    now_ += kSecond;
    time_.tick();
    silence_.received(time_);
    silence_.acknowledged(time_, 0, false, 2 * kSecond);
  }
  EXPECT_EQ(seconds(5, false, true), Verdict::alive);
  EXPECT_EQ(second(false, true), Verdict::lost);
}

// A patience below the timeout changes nothing but the reason.
TEST_F(PeerSilenceTest, ShortPatience) {
  rules_.patience_ns = kSecond;
  seconds(5, false, false);
  EXPECT_EQ(second(false, false), Verdict::given_up);
}

}  // namespace
}  // namespace seto
