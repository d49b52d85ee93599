#pragma once

#include <string_view>

namespace seto::testing {

// The number of threads of this process with this name.
[[nodiscard]] int threads_named(std::string_view name);

// The same, as soon as there are no more than expected, or after 20 s. A thread that was joined may stay in the kernel's list
// for a moment, because its joiner is woken before the kernel has removed it.
[[nodiscard]] int threads_left(std::string_view name, int expected);

// Call this before a fork. Returns once all other threads of this process have been asleep in two looks in a row, or after 2 s.
// The AddressSanitizer of GCC 12 does not hold the locks of its allocator over fork(): if another thread is inside malloc() at
// that moment, the child has a copy of a locked allocator and blocks in its first allocation. A thread that waits for work is not
// inside malloc().
void wait_until_other_threads_sleep();

}  // namespace seto::testing
