#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

// A machine may take its cores away from a test for hundreds of milliseconds, so one try of what depends on time proves little.
namespace seto::testing {

inline constexpr std::initializer_list<std::uint64_t> kGrowingMs = {200, 1'000, 5'000, 20'000};

// For tests of what happens at a deadline, when something else has to be there before it. Calls `attempt` with longer and longer
// times until it succeeds, which it says by an empty text. Returns the text of the last try.
[[nodiscard]] std::string with_growing_time(const std::function<std::string(std::uint64_t ms)>& attempt,
                                            std::initializer_list<std::uint64_t> times_ms = kGrowingMs);

// Gives with_growing_time() what it expects of an attempt: an empty text if the other text contains the part.
[[nodiscard]] std::string lacks(std::string_view text, std::string_view part);

// For tests of how long something takes. Calls `measure` until a result is below the limit, but five times at most. Returns the
// smallest result.
[[nodiscard]] std::uint64_t least_of_tries(std::uint64_t limit, const std::function<std::uint64_t()>& measure);

}  // namespace seto::testing
