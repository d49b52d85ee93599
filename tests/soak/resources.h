#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace seto::soak {

// The resources of this process.
struct Resources {
  std::map<std::string, int> descriptors;  // by kind
  int threads = 0;
  std::uint64_t heap_bytes = 0;  // allocated and not freed
  std::uint64_t memory_bytes =
      0;  // proportional share of resident memory (PSS); 0 under sanitizers, whose own memory it would be

  [[nodiscard]] int open() const;
  [[nodiscard]] std::string text() const;
};
Resources resources_now();

// Called at the start of a process: it limits malloc to one heap, which returns freed memory. The heaps of threads would keep
// tens of MiB at random.
void make_heap_plain();

// Keeps the smaller number of descriptors and threads of each kind, so that the remains of a failure do not count.
void keep_least(Resources& least, const Resources& now);

// Returns an empty text if `now` is no more than `before`, apart from the memory that a general-purpose heap may keep.
std::string growth(const Resources& before, const Resources& now);
// Compares descriptors and threads only: whether all remains of failures are gone.
bool as_few(const Resources& before, const Resources& now);

}  // namespace seto::soak
