#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

#include "src/base/result.h"

namespace seto {

// A thread of the library: all signals are blocked in it, so that the handlers of the program run on threads of the program.
// The name (at most 15 characters) shows in debuggers and top. Affinity is the caller's.
[[nodiscard]] Result<std::thread> start_thread(const char* name, std::function<void()> body);

// Calls work(0) to work(count - 1), begun in this order, at most `most` of them at once, each on a thread of its own or the
// caller's: for what waits longer than it computes. Where no thread can be had it takes longer. After a failure nothing more is
// begun and `hopeless` is set, so that what is under way may end; gives the failure that came first.
using SideWork = std::function<Status(std::size_t number, const std::atomic<bool>& hopeless)>;
[[nodiscard]] Status side_by_side(std::size_t count, std::size_t most, const SideWork& work);

}  // namespace seto
