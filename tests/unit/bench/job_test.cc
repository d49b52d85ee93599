#include "bench/common/job.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace seto::bench {
namespace {

TEST(Job, RanksOfThreadsAndProcessesPassABarrier) {
  for (const JobShape& shape : {JobShape{1, 4, 2}, JobShape{3, 1, 2}, JobShape{2, 3, 2}}) {
    const auto job = Job::create(shape);
    ASSERT_NE(job, nullptr);
    const int code = job->run([&](int rank) {
      for (int round = 0; round < 200; ++round) {
        job->value(rank) = rank + round;
        job->iteration_times(rank)[1] = rank;
        if (!job->barrier()) return 10;
        for (int peer = 0; peer < job->ranks(); ++peer) {
          if (job->value(peer) != peer + round || job->iteration_times(peer)[1] != peer) return 11;
        }
        if (!job->barrier()) return 12;
      }
      return 0;
    });
    EXPECT_EQ(code, 0);
  }
}

TEST(Job, WorstExitCodeWins) {
  const auto job = Job::create({3, 1, 0});
  EXPECT_EQ(job->run([](int rank) { return rank == 1 ? 7 : 0; }), 7);
}

TEST(Job, AFailureReleasesTheBarrier) {
  const auto job = Job::create({1, 3, 0});
  const int code = job->run([&](int rank) {
    if (rank == 2) {
      job->fail();
      return 5;
    }
    return job->barrier() ? 0 : 4;
  });
  EXPECT_EQ(code, 5);
}

TEST(Job, AKilledProcessIsNamedAndTheOthersEnd) {
  const auto job = Job::create({3, 1, 0});
  testing::internal::CaptureStderr();
  const int code = job->run([&](int rank) {
    if (rank == 1) raise(SIGKILL);
    return job->barrier() ? 0 : 4;
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 128 + SIGKILL);
  EXPECT_NE(text.find("rank 1 (process "), std::string::npos) << text;
  EXPECT_NE(text.find("signal 9"), std::string::npos) << text;
}

}  // namespace
}  // namespace seto::bench
