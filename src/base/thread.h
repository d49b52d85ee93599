#pragma once

#include <functional>
#include <thread>

#include "src/base/result.h"

namespace seto {

// A thread of the library: all signals are blocked in it, so that the handlers of the program run on threads of the program.
// The name (at most 15 characters) shows in debuggers and top. Affinity is the caller's.
[[nodiscard]] Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace seto
