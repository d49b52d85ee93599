#include "tests/support/own_threads.h"

#include <dirent.h>

#include <fstream>
#include <string>
#include <thread>

#include "src/base/clock.h"

namespace seto::testing {

int threads_named(std::string_view name) {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    std::string its_name;
    std::ifstream("/proc/self/task/" + std::string(entry->d_name) + "/comm") >> its_name;
    if (its_name == name) ++count;
  }
  closedir(tasks);
  return count;
}

int threads_left(std::string_view name, int expected) {
  const std::uint64_t until = monotonic_ns() + 1'000'000'000;
  int count = threads_named(name);
  for (; count > expected && monotonic_ns() < until; count = threads_named(name)) std::this_thread::yield();
  return count;
}

}  // namespace seto::testing
