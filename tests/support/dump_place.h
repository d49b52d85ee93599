#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"

namespace seto::testing {

// A directory that is removed with the test, and the variables with which jobs write their dumps to it.
class DumpPlace final {
 public:
  explicit DumpPlace(int signal = 0) {
    std::string pattern = (std::filesystem::temp_directory_path() / "seto_report_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    setenv("SETO_DUMP_FILE", (path_ / "dump-%h-%p-%r.json").c_str(), 1);
    if (signal != 0) setenv("SETO_DUMP_SIGNAL", std::to_string(signal).c_str(), 1);
  }
  ~DumpPlace() {
    unsetenv("SETO_DUMP_FILE");
    unsetenv("SETO_DUMP_SIGNAL");
    std::filesystem::remove_all(path_);
  }
  DumpPlace(const DumpPlace&) = delete;
  DumpPlace& operator=(const DumpPlace&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::vector<std::filesystem::path> written() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.path().extension() == ".json") found.push_back(entry.path());
    return found;
  }
  bool await(std::size_t count) const {
    const Deadline until = Deadline::after_ms(20'000);
    while (written().size() < count && !until.passed()) std::this_thread::yield();
    return written().size() >= count;
  }

 private:
  std::filesystem::path path_;
};

inline std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace seto::testing
