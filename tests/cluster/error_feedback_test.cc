// Encoding errors of codecs, kept by the caller and added in the next call.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/cluster/thread_ranks.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "tests/support/slow_links.h"

namespace seto::testing {
namespace {

constexpr std::size_t kCount = 10'000;

class ErrorFeedback : public ::testing::Test {
 private:
  const SlowLinks slow_;
};

// Runs the body on each rank, with a communicator that encodes every sum.
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

// The training of one rank: sums of gradients in int4, step by step.
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

  // The largest difference of the sum of all results from the exact sum.
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

TEST_F(ErrorFeedback, KeepsTheErrorOfManyStepsAtThatOfOne) {
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
    EXPECT_GT(without.worst(kSteps), 2 * with.worst(kSteps)) << "the test proves nothing: int4 has too small an error without it";
  });
}

TEST_F(ErrorFeedback, ContinuesWithTheSameBitsAfterSaveAndLoad) {
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

std::vector<std::vector<float>> gradients(int rank, int steps) {
  std::vector<std::vector<float>> all(static_cast<std::size_t>(steps), std::vector<float>(kCount));
  for (int step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < kCount; ++i) all[static_cast<std::size_t>(step)][i] = Training::gradient(rank, i, step);
  return all;
}

void wait_for(setoStream_t stream) {
  std::uint64_t last = 0;
  ASSERT_EQ(setoStreamPosition(stream, &last), setoSuccess);
  ASSERT_EQ(setoStreamWait(stream, last, 0), setoSuccess);
}

// Two operations may be under way. The second must wait for the state, and gets the same bits as a blocking call.
TEST_F(ErrorFeedback, IsUsedByOneCallAtATime) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    constexpr int kSteps = 6;
    Training blocking(seat, comm);
    blocking.steps(0, kSteps);
    const auto all_reduce = [&](std::vector<float>& each, Training& training, setoStream_t stream) {
      const Answer done =
          answer(setoAllReduceConfig(each.data(), each.data(), kCount, setoFloat32, setoSum, comm, stream, &training.call));
      ASSERT_EQ(done.code, setoSuccess) << done;
    };
    std::vector<std::vector<float>> values = gradients(seat.rank, kSteps);
    Training grouped(seat, comm);
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    for (std::vector<float>& each : values) all_reduce(each, grouped, nullptr);
    ASSERT_EQ(setoGroupEnd(), setoSuccess);
    EXPECT_EQ(values.back(), blocking.results());

    values = gradients(seat.rank, kSteps);
    Training queued(seat, comm);
    setoStream_t streams[2] = {nullptr, nullptr};
    for (setoStream_t& stream : streams) ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    for (std::size_t step = 0; step < values.size(); ++step) all_reduce(values[step], queued, streams[step % 2]);
    // Its calls continue without the handle.
    ASSERT_EQ(setoErrorFeedbackDestroy(queued.state), setoSuccess);
    queued.state = nullptr;
    for (setoStream_t stream : streams) wait_for(stream);
    EXPECT_EQ(values.back(), blocking.results());
    for (setoStream_t stream : streams) EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  });
}

TEST_F(ErrorFeedback, IsNotSavedDuringACall) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    Training training(seat, comm);
    std::vector<float> values(kCount, 0.3F);
    std::vector<char> saved = training.saved();
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    const auto queue = [&] {
      ASSERT_EQ(setoAllReduceConfig(values.data(), values.data(), kCount, setoFloat32, setoSum, comm, stream, &training.call),
                setoSuccess);
    };
    if (seat.rank == 0) {  // the other rank has not called yet, so the call cannot end
      queue();
      for (const Answer& refused : {answer(setoErrorFeedbackSave(training.state, saved.data(), saved.size())),
                                    answer(setoErrorFeedbackLoad(training.state, saved.data(), saved.size())),
                                    answer(setoErrorFeedbackReset(training.state))}) {
        EXPECT_EQ(refused.code, setoInvalidUsage) << refused;
        EXPECT_TRUE(refused.says("queued or is under way")) << refused;
      }
    }
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 1) queue();
    wait_for(stream);
    EXPECT_EQ(setoErrorFeedbackSave(training.state, saved.data(), saved.size()), setoSuccess);
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  });
}

TEST_F(ErrorFeedback, IsUsableAfterItsCallHasFailed) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    setoErrorFeedback_t state = nullptr;
    ASSERT_EQ(setoErrorFeedbackCreate(&state, kCount, setoFloat32, comm), setoSuccess);
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    call.errorFeedback = state;
    call.deadlineMs = 200;
    std::vector<float> values(kCount, 0.3F);
    if (seat.rank == 0) {
      const Answer late =
          answer(setoAllReduceConfig(values.data(), values.data(), kCount, setoFloat32, setoSum, comm, nullptr, &call));
      EXPECT_EQ(late.code, setoTimeout) << late;
    }
    ASSERT_TRUE(seat.meet(1));
    EXPECT_EQ(setoErrorFeedbackReset(state), setoSuccess);
    EXPECT_EQ(setoErrorFeedbackDestroy(state), setoSuccess);
    (void)setoCommAbort(comm);
  });
}

// One rank has no state: its encoding error is lost, and all ranks still get the same bits.
TEST_F(ErrorFeedback, MayBeMissingOnSomeRanks) {
  run_coded(3, [](const Seat& seat, setoComm_t comm) {
    Training training(seat, comm, seat.rank != 1);
    training.steps(0, 5);
    std::vector<float> of_first = training.results();
    ASSERT_EQ(setoBroadcast(of_first.data(), of_first.data(), kCount, setoFloat32, 0, comm, nullptr), setoSuccess);
    EXPECT_EQ(training.results(), of_first);
  });
}

// Averages, wider numbers, and parts of different sizes.
TEST_F(ErrorFeedback, WorksWithEveryReductionAndType) {
  run_coded(3, [](const Seat& seat, setoComm_t comm) {
    constexpr int kSteps = 60;
    const std::size_t counts[3] = {1'000, 0, 333};
    const std::size_t all = 1'333;
    const std::size_t first = seat.rank == 2 ? 1'000 : 0;  // of this rank's part
    setoErrorFeedback_t states[2] = {nullptr, nullptr};
    for (setoErrorFeedback_t& state : states) ASSERT_EQ(setoErrorFeedbackCreate(&state, all, setoFloat64, comm), setoSuccess);
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    std::vector<double> values(all), part(counts[seat.rank]), average(all), parts(part.size()), averages(all);
    const auto value = [](int rank, std::size_t i) { return 0.1 + 0.01 * static_cast<double>((i * 7 + 3) % 11) + 0.003 * rank; };
    for (std::size_t i = 0; i < all; ++i) values[i] = value(seat.rank, i);
    for (int step = 0; step < kSteps; ++step) {
      call.errorFeedback = states[0];
      const Answer scattered =
          answer(setoReduceScattervConfig(values.data(), part.data(), counts, setoFloat64, setoSum, comm, nullptr, &call));
      ASSERT_EQ(scattered.code, setoSuccess) << scattered;
      call.errorFeedback = states[1];
      const Answer averaged =
          answer(setoAllReduceConfig(values.data(), average.data(), all, setoFloat64, setoAvg, comm, nullptr, &call));
      ASSERT_EQ(averaged.code, setoSuccess) << averaged;
      for (std::size_t i = 0; i < part.size(); ++i) parts[i] += part[i];
      for (std::size_t i = 0; i < all; ++i) averages[i] += average[i];
    }
    int int4 = 0;
    double one_call = 0;
    ASSERT_EQ(setoCodecId("int4", &int4), setoSuccess);
    ASSERT_EQ(setoCodecErrorBound(int4, setoFloat64, seat.ranks, 0.25, &one_call), setoSuccess);
    for (std::size_t i = 0; i < all; ++i) {
      const double exact = kSteps * (value(0, i) + value(1, i) + value(2, i));
      ASSERT_NEAR(averages[i], exact / 3, one_call) << i;
      if (i >= first && i < first + part.size()) {
        ASSERT_NEAR(parts[i - first], exact, one_call) << i;
      }
    }
    for (setoErrorFeedback_t state : states) EXPECT_EQ(setoErrorFeedbackDestroy(state), setoSuccess);
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

TEST_F(ErrorFeedback, OfAnotherShapeOrAlteredIsRejected) {
  run_coded(2, [](const Seat& seat, setoComm_t comm) {
    Training training(seat, comm);
    std::vector<float> values(kCount, 0.5F);
    std::vector<double> doubles(kCount, 0.5);
    const auto summed = [&](void* data, std::size_t count, setoDataType_t type, setoRedOp_t op) {
      return answer(setoAllReduceConfig(data, data, count, type, op, training.comm, nullptr, &training.call));
    };
    const Answer shorter = summed(values.data(), kCount - 1, setoFloat32, setoSum);
    EXPECT_EQ(shorter.code, setoInvalidArgument) << shorter;
    EXPECT_TRUE(shorter.says("the state has 10000 float, but the call's input has 9999 float")) << shorter;
    EXPECT_EQ(summed(doubles.data(), kCount, setoFloat64, setoSum).code, setoInvalidArgument);
    EXPECT_EQ(summed(values.data(), kCount, setoFloat32, setoMax).code, setoInvalidArgument);
    // The same call as before, except for the state.
    setoCallConfig_t wrong = SETO_CALL_CONFIG_INITIALIZER;
    ASSERT_EQ(setoErrorFeedbackCreate(&wrong.errorFeedback, 1, setoFloat32, training.comm), setoSuccess);
    setoCallConfig_t plain = SETO_CALL_CONFIG_INITIALIZER;
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_EQ(setoAllReduceConfig(values.data(), values.data(), kCount, setoFloat32, setoSum, training.comm, nullptr, &plain),
                setoSuccess);
      EXPECT_EQ(setoAllReduceConfig(values.data(), values.data(), kCount, setoFloat32, setoSum, training.comm, nullptr, &wrong),
                setoInvalidArgument);
    }
    const Answer sent =
        answer(setoSendConfig(values.data(), 1, setoFloat32, 1 - seat.rank, training.comm, nullptr, &training.call));
    EXPECT_EQ(sent.code, setoInvalidArgument) << sent;
    EXPECT_TRUE(sent.says("only sums are encoded")) << sent;
    EXPECT_EQ(setoErrorFeedbackDestroy(wrong.errorFeedback), setoSuccess);
    setoComm_t child = nullptr;
    ASSERT_EQ(setoCommSplit(training.comm, 0, seat.rank, &child, nullptr), setoSuccess);
    const Answer elsewhere =
        answer(setoAllReduceConfig(values.data(), values.data(), kCount, setoFloat32, setoSum, child, nullptr, &training.call));
    EXPECT_EQ(elsewhere.code, setoInvalidArgument) << elsewhere;
    EXPECT_TRUE(elsewhere.says("made for another communicator")) << elsewhere;
    EXPECT_EQ(setoCommDestroy(child), setoSuccess);
    training.step(0);

    setoErrorFeedback_t other = nullptr;
    ASSERT_EQ(setoErrorFeedbackCreate(&other, kCount / 2, setoFloat32, training.comm), setoSuccess);
    std::vector<char> saved = training.saved();
    const auto loaded = [&](setoErrorFeedback_t into, std::size_t size) {
      return answer(setoErrorFeedbackLoad(into, saved.data(), size));
    };
    const Answer of_another = loaded(other, saved.size());
    EXPECT_TRUE(of_another.says("it has 10000 float, but this state has 5000 float")) << of_another;
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

// A new communicator may get the address of a destroyed one. A state of the destroyed one must be rejected nevertheless.
SETO_TEST_ALONE(ErrorFeedbackOfACommunicator, ThatWasDestroyedIsRejectedByANewOneAtTheSameAddress) {
  constexpr int kAttempts = 200;
  const auto made = [](setoComm_t& comm) { ASSERT_TRUE(succeeded(setoCommInitAll(&comm, 1, nullptr))); };
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    setoComm_t first = nullptr, second = nullptr;
    made(first);
    const void* const address = address_of(first);
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    ASSERT_TRUE(succeeded(setoErrorFeedbackCreate(&call.errorFeedback, 1, setoFloat32, first)));
    ASSERT_TRUE(succeeded(setoCommDestroy(first)));
    made(second);
    const bool same_address = address_of(second) == address;
    float value = 1;
    EXPECT_TRUE(failed(setoAllReduceConfig(&value, &value, 1, setoFloat32, setoSum, second, nullptr, &call), setoInvalidArgument,
                       "it was made for another communicator"));
    EXPECT_TRUE(succeeded(setoErrorFeedbackDestroy(call.errorFeedback)));
    EXPECT_TRUE(succeeded(setoCommDestroy(second)));
    if (same_address) return;
  }
  GTEST_SKIP() << "no communicator got the address of one before it";
}

}  // namespace
}  // namespace seto::testing
