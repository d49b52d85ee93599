#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace seto::soak {

// What this process holds.
struct Resources {
  std::map<std::string, int> descriptors;  // by what they are
  int threads = 0;
  std::uint64_t heap_bytes = 0;    // asked for and not given back
  std::uint64_t memory_bytes = 0;  // its share of what is in memory (PSS); 0 under sanitizers, whose own memory it would be

  [[nodiscard]] int open() const;
  [[nodiscard]] std::string text() const;
};
Resources resources_now();

// At the start of a process: one heap, which gives back what is freed. The heaps of threads keep tens of MiB in ways that chance
// decides.
void make_heap_plain();

// Of descriptors and threads the smaller number of each: what lingers for a while after a failure counts for nothing.
void keep_least(Resources& least, const Resources& now);

// Empty if `now` is no more than `before`, but for the memory that a general-purpose heap may keep.
std::string growth(const Resources& before, const Resources& now);
// Of descriptors and threads alone: whether nothing has to go any more.
bool as_few(const Resources& before, const Resources& now);

}  // namespace seto::soak
