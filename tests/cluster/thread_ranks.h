#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "include/seto/seto.h"
#include "src/base/clock.h"
#include "tests/support/api_ranks.h"

namespace seto::testing {

// Success of a call; a failure shows its text.
inline ::testing::AssertionResult succeeded(setoResult_t result) {
  if (result == setoSuccess) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << setoGetErrorString(result) << ": " << setoGetLastError(nullptr);
}

// Failure with this result, and with a text that contains the part.
inline ::testing::AssertionResult failed(setoResult_t result, setoResult_t expected, const std::string& part) {
  const std::string text = setoGetLastError(nullptr);
  if (result == expected && text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << setoGetErrorString(result) << ": " << text << " (expected "
                                       << setoGetErrorString(expected) << " and \"" << part << "\")";
}

// The state of the communicator once no call is under way in it.
inline setoResult_t settled(setoComm_t comm) {
  const Deadline until = Deadline::after_ms(20'000);
  setoResult_t state = setoInProgress;
  while (state == setoInProgress && !until.passed()) {
    EXPECT_TRUE(succeeded(setoCommGetAsyncError(comm, &state)));
    std::this_thread::yield();
  }
  return state;
}

// A value that the enumeration does not have.
template <class Enumeration>
Enumeration none_of(int value) {
  Enumeration result;
  static_assert(sizeof result == sizeof value);
  std::memcpy(&result, &value, sizeof value);
  return result;
}

// Ranks of one communicator as threads of this process.
class ThreadRanks final {
 public:
  explicit ThreadRanks(int ranks) : comms_(static_cast<std::size_t>(ranks)) {
    EXPECT_TRUE(succeeded(setoCommInitAll(comms_.data(), ranks, nullptr)));
  }
  ~ThreadRanks() {
    for (const setoComm_t comm : comms_)
      if (comm != nullptr) (void)setoCommDestroy(comm);
  }
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(comms_.size()); }
  setoComm_t& operator[](int rank) { return comms_[static_cast<std::size_t>(rank)]; }

  // Runs the body on a thread for each rank.
  void each(const std::function<void(setoComm_t comm, int rank)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([&, rank] { body((*this)[rank], rank); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<setoComm_t> comms_;
};

// A test whose body runs in a child process, because the test's own process must never use the library, so that other tests may
// fork.
#define SETO_TEST_ALONE(suite, name)                                           \
  static void suite##_##name();                                                \
  TEST(suite, name) { EXPECT_TRUE(seto::testing::run_alone(suite##_##name)); } \
  static void suite##_##name()

}  // namespace seto::testing
