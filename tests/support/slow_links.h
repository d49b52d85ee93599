#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace seto::testing {

// Constants of choice for links so slow that fewer bytes are always faster. Nothing is measured, since on a busy machine another
// choice would follow.
class SlowLinks {
 public:
  SlowLinks() : path_(::testing::TempDir() + "seto_slow_" + std::to_string(getpid())) {
    std::ofstream(path_) << "node.gigabytes_per_second 0.1\nsite.gigabytes_per_second 0.1\nworld.gigabytes_per_second 0.01\n";
    setenv("SETO_TUNING_FILE", path_.c_str(), 1);
    setenv("SETO_CALIBRATE", "off", 1);
  }
  ~SlowLinks() {
    unsetenv("SETO_TUNING_FILE");
    unsetenv("SETO_CALIBRATE");
    unlink(path_.c_str());
  }
  SlowLinks(const SlowLinks&) = delete;
  SlowLinks& operator=(const SlowLinks&) = delete;

 private:
  std::string path_;
};

}  // namespace seto::testing
