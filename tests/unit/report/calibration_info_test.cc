// seto info calibration: the constants that earlier jobs measured on this machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "src/core/choice/kept_constants.h"
#include "src/core/connect/context.h"
#include "src/report/info.h"

namespace seto {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CalibrationInfo : public ::testing::Test {
 protected:
  CalibrationInfo() { setenv("XDG_CACHE_HOME", folder_.c_str(), 1); }
  ~CalibrationInfo() override {
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    std::filesystem::remove_all(folder_);
  }
  static std::string text() { return info("calibration", "0", Config(), ReportFormat::text).value(); }
  [[nodiscard]] KeptFiles files() const { return KeptFiles(folder_ + "/seto"); }

  const std::string folder_ = ::testing::TempDir() + "seto_info_" + std::to_string(std::random_device{}());
};

TEST_F(CalibrationInfo, NamesTheFolderAlsoWhereNoJobHasMeasured) {
  EXPECT_THAT(text(), HasSubstr(folder_ + "/seto"));
  EXPECT_THAT(text(), HasSubstr("no job has measured yet"));
}

TEST_F(CalibrationInfo, SaysWhatIsKeptAndWhetherJobsUseIt) {
  const MeasuredMachine here = MeasuredMachine::here(usable_cores(), 1);
  const TierCost node{2.5e-7, 12.5e9, 6.25e-8, 200e9, 1 << 20};
  ASSERT_TRUE(files().write(here, {node, 2}).ok());
  EXPECT_THAT(text(), HasSubstr("0.25 us, 12.5 GB/s, 0.0625 us a message, 200 GB/s within 1024 KiB, "
                                "long messages from 8 KiB  (2 jobs: measured until 4)"));
  ASSERT_TRUE(files().write(here, {node, KeptConstants::kEnough}).ok());
  EXPECT_THAT(text(), HasSubstr("(4 jobs: the next ones use it)"));
  EXPECT_THAT(text(), Not(HasSubstr("another machine")));
  MeasuredMachine other = here;
  other.kernel = "5.10";
  ASSERT_TRUE(files().write(other, {node, 1}).ok());
  EXPECT_THAT(text(), HasSubstr("(1 job: another machine or build)"));
}

TEST_F(CalibrationInfo, SaysWhyAFileIsNotUsed) {
  ASSERT_TRUE(std::filesystem::create_directories(folder_ + "/seto"));
  std::ofstream(folder_ + "/seto/broken.txt") << "something else\n";
  EXPECT_THAT(text(), HasSubstr("broken.txt  not used  (it does not begin like a file of constants)"));
}

}  // namespace
}  // namespace seto
