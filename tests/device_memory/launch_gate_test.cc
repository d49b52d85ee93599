// The gate between launches and calls of the driver that wait for kernels.
#include "src/core/device_memory/launch_gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "src/base/clock.h"

namespace seto::testing {
namespace {

TEST(LaunchGate, ALaunchWaitsUntilTheGateIsOpen) {
  LaunchGate& gate = LaunchGate::of_process();
  std::future<std::uint64_t> passed;
  const std::uint64_t begin = monotonic_ns();
  std::uint64_t opened = 0;
  {
    const LaunchGate::Closed closed(gate.came());
    ASSERT_TRUE(closed.holds());
    passed = std::async(std::launch::async, [&] {
      gate.pass();
      return monotonic_ns();
    });
    static_cast<void>(passed.wait_for(std::chrono::milliseconds(50)));
    opened = monotonic_ns();
  }
  const std::uint64_t end = passed.get();
  EXPECT_TRUE(end >= opened || end - begin >= LaunchGate::kLongestMs * 1'000'000) << "it has passed a closed gate";
}

TEST(LaunchGate, ALaunchDoesNotWaitForEver) {
  LaunchGate& gate = LaunchGate::of_process();
  const LaunchGate::Closed closed(gate.came());
  ASSERT_TRUE(closed.holds());
  gate.pass();
  EXPECT_FALSE(LaunchGate::Closed(gate.came() - 1).holds());
}

TEST(LaunchGate, ItIsNotClosedAfterALaunchThatTheLookDidNotSee) {
  LaunchGate& gate = LaunchGate::of_process();
  const std::uint64_t came = gate.came();
  EXPECT_TRUE(LaunchGate::Closed(came).holds());
  gate.pass();
  EXPECT_FALSE(LaunchGate::Closed(came).holds());
  EXPECT_TRUE(LaunchGate::Closed(gate.came()).holds());
}

TEST(LaunchGate, ItIsNotClosedDuringUnwatchedWork) {
  LaunchGate& gate = LaunchGate::of_process();
  {
    const LaunchGate::Unwatched unwatched;
    EXPECT_FALSE(LaunchGate::Closed(gate.came()).holds());
  }
  EXPECT_TRUE(LaunchGate::Closed(gate.came()).holds());
}

}  // namespace
}  // namespace seto::testing
