#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

#include "src/base/result.h"

namespace seto {

// Starts a thread of the library. All signals are blocked in it, so that the program's signal handlers run on the program's own
// threads. Debuggers and top show the name (at most 15 characters). The thread inherits the affinity of its caller.
[[nodiscard]] Result<std::thread> start_thread(const char* name, std::function<void()> body);

// Calls work(0) to work(count - 1), starting them in this order, at most `most` of them at once, each on a thread of its own or
// on the caller's: for work that waits longer than it computes. If no thread can be started, the calls run one after another.
// After a failure no further call is started and `hopeless` is set, so that running calls can end early. Returns the first
// failure.
using SideWork = std::function<Status(std::size_t number, const std::atomic<bool>& hopeless)>;
[[nodiscard]] Status side_by_side(std::size_t count, std::size_t most, const SideWork& work);

}  // namespace seto
