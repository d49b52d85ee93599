#include "tests/support/own_threads.h"

#include <dirent.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "src/base/clock.h"

namespace seto::testing {
namespace {

enum class Others : std::uint8_t { none, asleep, awake };

// The state of a thread is the letter behind its name, which stands in parentheses and may contain any character. A thread that
// has ended meanwhile has no state.
bool is_asleep(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/stat");
  std::ostringstream text;
  text << file.rdbuf();  // unlike an iterator, this throws nothing if the thread ends between open and read
  const std::string stat = text.str();
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() || stat[name_end + 2] == 'S';
}

Others other_threads() {
  Others result = Others::none;
  const std::string own = std::to_string(gettid());
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    const std::string thread = entry->d_name;
    if (thread[0] == '.' || thread == own) continue;
    if (result == Others::none) result = Others::asleep;
    if (!is_asleep(thread)) result = Others::awake;
  }
  closedir(tasks);
  return result;
}

}  // namespace

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
  const Deadline until = Deadline::after_ms(20'000);
  int count = threads_named(name);
  for (; count > expected && !until.passed(); count = threads_named(name)) std::this_thread::yield();
  return count;
}

void wait_until_other_threads_sleep() {
  const Deadline until = Deadline::after_ms(2'000);
  for (int looks = 0; looks < 2 && !until.passed();) {
    const Others others = other_threads();
    if (others == Others::none) return;
    looks = others == Others::asleep ? looks + 1 : 0;
    if (looks < 2) poll(nullptr, 0, 1);
  }
}

}  // namespace seto::testing
