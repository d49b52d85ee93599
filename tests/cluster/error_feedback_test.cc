// What codecs leave out, kept by the caller and added to the next call.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr std::size_t kCount = 10'000;

// Links so slow that fewer bytes always win.
class ErrorFeedback : public ::testing::Test {
 protected:
  ErrorFeedback() : path_(::testing::TempDir() + "seto_feedback_" + std::to_string(getpid())) {
    std::ofstream(path_) << "node.gigabytes_per_second 0.1\nsite.gigabytes_per_second 0.1\n";
    setenv("SETO_TUNING_FILE", path_.c_str(), 1);
  }
  ~ErrorFeedback() override {
    unsetenv("SETO_TUNING_FILE");
    unlink(path_.c_str());
  }

 private:
  std::string path_;
};

// What each rank of a test does, with a communicator that codes all it can.
void run_coded(int ranks, void (*body)(const Seat& seat, setoComm_t comm)) {
  run_ranks(Kind::processes, ranks, [body](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.codec = "int4";
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    body(seat, comm);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Of one rank: sums of gradients in int4, step by step.
class Training {
 public:
  Training(const Seat& seat, setoComm_t its_comm, bool owes = true)
      : comm(its_comm), seat_(seat), totals_(kCount), results_(kCount) {
    if (owes) {
      EXPECT_EQ(setoErrorFeedbackCreate(&state, kCount, setoFloat32, comm), setoSuccess);
    }
    call.errorFeedback = state;
  }
  ~Training() {
    if (state != nullptr) {
      EXPECT_EQ(setoErrorFeedbackDestroy(state), setoSuccess);
    }
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  static float gradient(int rank, std::size_t i, int step) {
    return std::sin(static_cast<float>(i) * 0.37F + static_cast<float>(rank + 5 * step)) * 0.01F + (i % 64 == 0 ? 1.0F : 0.003F);
  }

  void step(int number) {
    std::vector<float> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = gradient(seat_.rank, i, number);
    const Answer done =
        answer(setoAllReduceConfig(values.data(), results_.data(), kCount, setoFloat32, setoSum, comm, nullptr, &call));
    ASSERT_EQ(done.code, setoSuccess) << done;
    for (std::size_t i = 0; i < kCount; ++i) totals_[i] += static_cast<double>(results_[i]);
  }
  void steps(int first, int end) {
    for (int number = first; number < end && !::testing::Test::HasFailure(); ++number) step(number);
  }

  // How far the sum of all results is from the exact sum, at most.
  [[nodiscard]] double worst(int end) const {
    double most = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      double exact = 0;
      for (int number = 0; number < end; ++number)
        for (int rank = 0; rank < seat_.ranks; ++rank) exact += static_cast<double>(gradient(rank, i, number));
      most = std::max(most, std::abs(totals_[i] - exact));
    }
    return most;
  }
  [[nodiscard]] const std::vector<float>& results() const { return results_; }
  [[nodiscard]] std::vector<char> saved() const {
    std::size_t size = 0;
    EXPECT_EQ(setoErrorFeedbackSize(state, &size), setoSuccess);
    std::vector<char> bytes(size);
    EXPECT_EQ(setoErrorFeedbackSave(state, bytes.data(), bytes.size()), setoSuccess);
    return bytes;
  }

  const setoComm_t comm;
  setoErrorFeedback_t state = nullptr;
  setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;

 private:
  const Seat& seat_;
  std::vector<double> totals_;
  std::vector<float> results_;
};

TEST_F(ErrorFeedback, LeavesManyStepsAsFarOffAsOne) {
  run_coded(3, [](const Seat& seat, setoComm_t comm) {
    constexpr int kSteps = 40;
    int int4 = 0;
    double one_call = 0;
    ASSERT_EQ(setoCodecId("int4", &int4), setoSuccess);
    ASSERT_EQ(setoCodecErrorBound(int4, setoFloat32, seat.ranks, 1.3, &one_call), setoSuccess);
    Training with(seat, comm);
    with.steps(0, kSteps);
    EXPECT_LE(with.worst(kSteps), one_call);
    Training without(seat, comm, false);
    without.steps(0, kSteps);
    EXPECT_GT(without.worst(kSteps), 2 * with.worst(kSteps)) << "the test shows nothing: int4 loses too little without";
  });
}

TEST_F(ErrorFeedback, IsSavedAndGoesOnElsewhereToTheSameBits) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    Training whole(seat, comm);
    whole.steps(0, 4);
    const std::vector<char> saved = whole.saved();
    whole.steps(4, 8);
    Training resumed(seat, comm);
    ASSERT_EQ(setoErrorFeedbackLoad(resumed.state, saved.data(), saved.size()), setoSuccess);
    resumed.steps(4, 8);
    EXPECT_EQ(resumed.results(), whole.results());
    Training forgetful(seat, comm);
    ASSERT_EQ(setoErrorFeedbackLoad(forgetful.state, saved.data(), saved.size()), setoSuccess);
    ASSERT_EQ(setoErrorFeedbackReset(forgetful.state), setoSuccess);
    forgetful.steps(4, 8);
    EXPECT_NE(forgetful.results(), whole.results());
  });
}

TEST_F(ErrorFeedback, IsTakenInTurnByCallsOfAStream) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    constexpr int kSteps = 6;
    Training blocking(seat, comm);
    blocking.steps(0, kSteps);
    Training queued(seat, comm);
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    std::vector<std::vector<float>> values(kSteps, std::vector<float>(kCount));
    for (int step = 0; step < kSteps; ++step) {
      std::vector<float>& each = values[static_cast<std::size_t>(step)];
      for (std::size_t i = 0; i < kCount; ++i) each[i] = Training::gradient(seat.rank, i, step);
      const Answer done =
          answer(setoAllReduceConfig(each.data(), each.data(), kCount, setoFloat32, setoSum, queued.comm, stream, &queued.call));
      ASSERT_EQ(done.code, setoSuccess) << done;
    }
    // Its calls go on without it.
    ASSERT_EQ(setoErrorFeedbackDestroy(queued.state), setoSuccess);
    queued.state = nullptr;
    std::uint64_t last = 0;
    ASSERT_EQ(setoStreamPosition(stream, &last), setoSuccess);
    ASSERT_EQ(setoStreamWait(stream, last, 0), setoSuccess);
    EXPECT_EQ(values.back(), blocking.results());
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  });
}

TEST_F(ErrorFeedback, OutlivesInfinity) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    Training training(seat, comm);
    training.steps(0, 2);
    std::vector<float> values(kCount, 0.25F);
    values[7] = std::numeric_limits<float>::infinity();
    ASSERT_EQ(
        setoAllReduceConfig(values.data(), values.data(), kCount, setoFloat32, setoSum, training.comm, nullptr, &training.call),
        setoSuccess);
    EXPECT_FALSE(std::isfinite(values[7]));
    training.step(2);
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_TRUE(std::isfinite(training.results()[i])) << i;
  });
}

TEST_F(ErrorFeedback, OfAnotherShapeOrAlteredIsRefusedWithBothNamed) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    Training training(seat, comm);
    std::vector<float> values(kCount, 0.5F);
    std::vector<double> doubles(kCount, 0.5);
    const auto summed = [&](void* data, std::size_t count, setoDataType_t type, setoRedOp_t op) {
      return answer(setoAllReduceConfig(data, data, count, type, op, training.comm, nullptr, &training.call));
    };
    const Answer shorter = summed(values.data(), kCount - 1, setoFloat32, setoSum);
    EXPECT_EQ(shorter.code, setoInvalidArgument) << shorter;
    EXPECT_TRUE(shorter.says("it is of 10000 float, the call's input is 9999 float")) << shorter;
    EXPECT_EQ(summed(doubles.data(), kCount, setoFloat64, setoSum).code, setoInvalidArgument);
    EXPECT_EQ(summed(values.data(), kCount, setoFloat32, setoMax).code, setoInvalidArgument);
    training.step(0);

    setoErrorFeedback_t other = nullptr;
    ASSERT_EQ(setoErrorFeedbackCreate(&other, kCount / 2, setoFloat32, training.comm), setoSuccess);
    std::vector<char> saved = training.saved();
    const auto loaded = [&](setoErrorFeedback_t into, std::size_t size) {
      return answer(setoErrorFeedbackLoad(into, saved.data(), size));
    };
    const Answer of_another = loaded(other, saved.size());
    EXPECT_TRUE(of_another.says("it is of 10000 float, this state of 5000 float")) << of_another;
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{32}, saved.size() - 1}) {
      const Answer cut = loaded(training.state, size);
      EXPECT_EQ(cut.code, setoInvalidArgument) << size << ": " << cut;
    }
    for (const std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{16}, std::size_t{24}, saved.size() / 2}) {
      saved[at] = static_cast<char>(saved[at] ^ 4);
      EXPECT_EQ(loaded(training.state, saved.size()).code, setoInvalidArgument) << at;
      saved[at] = static_cast<char>(saved[at] ^ 4);
    }
    EXPECT_EQ(loaded(training.state, saved.size()).code, setoSuccess);
    EXPECT_EQ(setoErrorFeedbackSave(training.state, saved.data(), saved.size() - 1), setoInvalidArgument);
    EXPECT_EQ(setoErrorFeedbackDestroy(other), setoSuccess);
    EXPECT_EQ(setoErrorFeedbackCreate(&other, 5, setoInt32, training.comm), setoInvalidArgument);
    EXPECT_EQ(setoErrorFeedbackCreate(&other, SIZE_MAX / 2, setoFloat32, training.comm), setoInvalidArgument);
    EXPECT_EQ(other, nullptr);
    EXPECT_EQ(setoErrorFeedbackReset(nullptr), setoInvalidArgument);
  });
}

}  // namespace
}  // namespace seto::testing
