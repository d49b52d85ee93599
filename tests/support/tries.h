#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

// A machine may take its cores away from a test for hundreds of milliseconds, so one try of what depends on time proves little.
namespace seto::testing {

inline constexpr std::initializer_list<std::uint64_t> kGrowingMs = {200, 1'000, 5'000, 20'000};

// For tests of what happens at a deadline, when something else has to be there before it. Calls `attempt` with longer and longer
// times until it succeeds, which it says by an empty text. Returns the text of the last try.
[[nodiscard]] std::string with_growing_time(const std::function<std::string(std::uint64_t ms)>& attempt,
                                            std::initializer_list<std::uint64_t> times_ms = kGrowingMs);

// Gives with_growing_time() what it expects of an attempt: an empty text if the other text contains the part.
[[nodiscard]] std::string lacks(std::string_view text, std::string_view part);

// For tests of how long something takes. Other programs of the machine only add time, so the least of up to `tries` measurements
// counts: it is measured again while it is not below the limit. Ends early if the test has failed otherwise.
inline constexpr int kMostTries = 5;
template <class Measure>
[[nodiscard]] auto least_of(int tries, std::invoke_result_t<Measure&> limit, Measure measure) {
  auto least = measure();
  for (int done = 1; done < tries && !(least < limit) && !::testing::Test::HasFailure(); ++done)
    least = std::min(least, measure());
  return least;
}

}  // namespace seto::testing
