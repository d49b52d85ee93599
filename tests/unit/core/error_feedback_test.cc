// The state of error feedback: which calls may use it, and what is accepted as a saved state.

#include "src/core/call/error_feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/core/call/collective_call.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kCount = 5;
constexpr std::uint64_t kCommunicator = 7;
constexpr std::size_t kHeading = 32;
constexpr std::size_t kTypeAt = 8;
constexpr std::size_t kCountAt = 16;

std::shared_ptr<ErrorFeedback> state_of(DataType type, std::uint64_t count = kCount) {
  return ErrorFeedback::create(type, count, kCommunicator).value();
}

std::vector<std::byte> saved(ErrorFeedback& state) {
  std::vector<std::byte> bytes(state.saved_size());
  EXPECT_EQ(state.save(bytes).text(), "");
  return bytes;
}

template <class Number>
void fill(ErrorFeedback& state, Number first) {
  auto* const residual = static_cast<Number*>(state.residual());
  for (std::uint64_t i = 0; i < kCount; ++i) residual[i] = first + static_cast<Number>(i);
}

Call sum_of(DataType type) {
  Call call;
  call.type = type;
  call.count = kCount;
  return call;
}

class FeedbackOf : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, FeedbackOf, ::testing::Values(DataType::float32, DataType::float64, DataType::bfloat16),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST_P(FeedbackOf, BeginsWithNoError) {
  const auto state = state_of(GetParam());
  const std::vector<std::byte> bytes = saved(*state);
  EXPECT_EQ(std::vector(bytes.begin() + kHeading, bytes.end()), std::vector<std::byte>(bytes.size() - kHeading));
}

TEST_P(FeedbackOf, LoadRestoresWhatSaveWrote) {
  const auto state = state_of(GetParam());
  if (GetParam() == DataType::float64)
    fill(*state, 0.125);
  else
    fill(*state, 0.125F);  // bfloat16 has residuals of 32 bits
  const std::vector<std::byte> bytes = saved(*state);
  ASSERT_EQ(state->reset().text(), "");
  EXPECT_NE(saved(*state), bytes);
  EXPECT_EQ(state->load(bytes).text(), "");
  EXPECT_EQ(saved(*state), bytes);
}

TEST_P(FeedbackOf, LoadAcceptsNoStateOfAnotherType) {
  const auto state = state_of(GetParam());
  for (const DataType other : {DataType::float32, DataType::float64, DataType::bfloat16}) {
    if (other == GetParam()) continue;
    const Status status = state->load(saved(*state_of(other)));
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_EQ(status.text(),
              "saved: it has 5 " + std::string(name_of(other)) + ", but this state has 5 " + std::string(name_of(GetParam())));
  }
}

TEST(ErrorFeedbackState, ExistsOnlyForTypesThatACodecAccepts) {
  for (int number = 0; number < kDataTypeCount; ++number) {
    const auto type = static_cast<DataType>(number);
    const bool accepted = type == DataType::float32 || type == DataType::float64 || type == DataType::bfloat16;
    const auto made = ErrorFeedback::create(type, kCount, kCommunicator);
    EXPECT_EQ(made.ok(), accepted) << name_of(type);
    if (!accepted) {
      EXPECT_THAT(std::string(made.status().text()), HasSubstr("no codec accepts " + std::string(name_of(type))));
    }
  }
}

TEST(ErrorFeedbackState, RefusesACountWhoseBytesOverflow) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max() / 2 / sizeof(float);
  for (const std::uint64_t count : {kMost + 1, std::numeric_limits<std::uint64_t>::max()}) {
    const auto made = ErrorFeedback::create(DataType::float32, count, kCommunicator);
    EXPECT_EQ(made.status().text(), "count: " + std::to_string(count) + " is too large");
  }
}

TEST(ErrorFeedbackState, OfNoElementsIsSavedAndLoaded) {
  const auto state = state_of(DataType::float32, 0);
  EXPECT_EQ(state->saved_size(), kHeading);
  EXPECT_EQ(state->load(saved(*state)).text(), "");
}

TEST(ErrorFeedbackState, BelongsToOneCommunicator) {
  const auto state = state_of(DataType::float32);
  EXPECT_TRUE(state->check_communicator(kCommunicator).ok());
  const Status other = state->check_communicator(kCommunicator + 1);
  EXPECT_EQ(other.code(), Code::invalid_argument);
  EXPECT_THAT(std::string(other.text()), HasSubstr("was made for another communicator"));
}

TEST(ErrorFeedbackState, ServesSumsOfItsShapeOnly) {
  const auto state = state_of(DataType::float32);
  EXPECT_TRUE(state->check(sum_of(DataType::float32), kCount).ok());
  EXPECT_EQ(state->check(sum_of(DataType::float32), kCount - 1).text(),
            "errorFeedback: the state has 5 float, but the call's input has 4 float");
  EXPECT_EQ(state->check(sum_of(DataType::float64), kCount).text(),
            "errorFeedback: the state has 5 float, but the call's input has 5 double");
  Call greatest = sum_of(DataType::float32);
  greatest.op = ReduceOp::max;
  EXPECT_EQ(state->check(greatest, kCount).text(),
            "errorFeedback: only sums are encoded, and this is all_reduce of 5 float, max");
  Call moves = sum_of(DataType::float32);
  moves.collective = Collective::all_gather;
  EXPECT_EQ(state->check(moves, kCount).text(), "errorFeedback: only sums are encoded, and this is all_gather of 5 float");
}

TEST(ErrorFeedbackState, IsHeldByOneCallAtATime) {
  const auto state = state_of(DataType::float32);
  EXPECT_TRUE(state->try_take());
  EXPECT_FALSE(state->try_take());
  state->give_back();
  EXPECT_TRUE(state->try_take());
}

TEST(ErrorFeedbackState, IsNotReadOrChangedWhileACallExpectsIt) {
  const auto state = state_of(DataType::float32);
  fill(*state, 2.0F);
  const std::vector<std::byte> before = saved(*state);
  state->expect();
  state->expect();
  state->forget();  // one of two calls has ended
  std::vector<std::byte> into(state->saved_size());
  for (const Status& status : {state->reset(), state->save(into), state->load(before)}) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_THAT(std::string(status.text()), HasSubstr("a call that was queued or is under way uses it"));
  }
  EXPECT_EQ(into, std::vector<std::byte>(into.size())) << "a refused save writes nothing";
  state->forget();
  EXPECT_EQ(saved(*state), before);
}

TEST(ErrorFeedbackState, SaveStatesTheRoomThatItNeeds) {
  const auto state = state_of(DataType::float64);
  std::vector<std::byte> small(state->saved_size() - 1);
  EXPECT_EQ(state->save(small).text(), "size: 71 bytes, but the state takes 72 (setoErrorFeedbackSize)");
  EXPECT_EQ(small, std::vector<std::byte>(small.size()));
}

// Every way to damage a saved state: the text says which, and the state keeps its residuals.
class DamagedState : public ::testing::Test {
 protected:
  void SetUp() override {
    fill(*state_, 3.5F);
    good_ = saved(*state_);
  }
  std::string refusal(const std::vector<std::byte>& bytes) {
    const Status status = state_->load(bytes);
    EXPECT_EQ(status.code(), Code::invalid_argument) << status.text();
    EXPECT_EQ(saved(*state_), good_) << "changed by a load that failed";
    return std::string(status.text());
  }

  std::shared_ptr<ErrorFeedback> state_ = state_of(DataType::float32);
  std::vector<std::byte> good_;
};

TEST_F(DamagedState, CutOffAnywhereIsRefused) {
  for (std::size_t size = 0; size < good_.size(); ++size) {
    const std::vector<std::byte> cut(good_.begin(), good_.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string wanted =
        size < kHeading ? "saved: these " + std::to_string(size) + " bytes were not written by setoErrorFeedbackSave"
                        : "saved: it is cut off after " + std::to_string(size) + " of " + std::to_string(good_.size()) + " bytes";
    EXPECT_EQ(refusal(cut), wanted);
  }
}

TEST_F(DamagedState, AnyChangedBitIsRefused) {
  for (std::size_t bit = 0; bit < good_.size() * 8; ++bit) {
    std::vector<std::byte> bytes = good_;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(refusal(bytes), "") << "bit " << bit;
  }
}

TEST_F(DamagedState, AnUnknownTypeIsSaidToBeUnknown) {
  std::vector<std::byte> bytes = good_;
  bytes[kTypeAt] = std::byte{200};
  EXPECT_EQ(refusal(bytes), "saved: it has 5 of an unknown type, but this state has 5 float");
  bytes = good_;
  bytes[kCountAt] = std::byte{6};
  EXPECT_EQ(refusal(bytes), "saved: it has 6 float, but this state has 5 float");
}

// A residual that is not finite would make every later sum not finite, so it is refused even with the right checksum.
TEST_F(DamagedState, ResidualsThatAreNotFiniteAreRefused) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const auto other = state_of(DataType::float32);
    fill(*other, 1.0F);
    static_cast<float*>(other->residual())[3] = bad;
    EXPECT_THAT(refusal(saved(*other)), HasSubstr("its bytes were altered"));
  }
}

TEST_F(DamagedState, RandomBytesAreRefused) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(random() % (2 * good_.size()));
    for (std::byte& one : bytes) one = static_cast<std::byte>(random());
    if (bytes.size() >= 8 && round % 2 == 0) std::memcpy(bytes.data(), good_.data(), 8);  // the right magic
    EXPECT_NE(refusal(bytes), "");
  }
}

}  // namespace
}  // namespace seto
