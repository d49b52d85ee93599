#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace seto::testing {

// Constants of choice for links so slow that fewer bytes are always faster. With a file of constants nothing is measured.
class SlowLinks {
 public:
  SlowLinks() : path_(::testing::TempDir() + "seto_slow_" + std::to_string(getpid())) {
    std::ofstream(path_) << "node.gigabytes_per_second 0.1\nsite.gigabytes_per_second 0.1\nworld.gigabytes_per_second 0.01\n";
    setenv("SETO_TUNING_FILE", path_.c_str(), 1);
  }
  ~SlowLinks() {
    unsetenv("SETO_TUNING_FILE");
    unlink(path_.c_str());
  }
  SlowLinks(const SlowLinks&) = delete;
  SlowLinks& operator=(const SlowLinks&) = delete;

 private:
  std::string path_;
};

}  // namespace seto::testing
