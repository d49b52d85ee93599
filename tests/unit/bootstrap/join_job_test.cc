// The order in which the calls of a process match those of the others.
#include "src/bootstrap/providers/join_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/child_process.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;
using testing::later;

struct Scene {
  Launch launch;
  Config config;
};

Scene scene_of(const std::string& root, Rank rank) {
  Scene scene;
  scene.launch.rank = rank;
  scene.launch.ranks = 2;
  scene.launch.way = RendezvousKind::root;
  scene.launch.where = root;
  scene.config.interface = "lo";
  return scene;
}

std::string failure_of(const Scene& scene, const InitOrder& turn, Deadline until) {
  auto joined = join_job(scene.launch, scene.config, turn, until);
  EXPECT_FALSE(joined.ok());
  return std::string(joined.status().text());
}

void expect_to_meet(const Scene& scene, const InitOrder& turn) {
  auto joined = join_job(scene.launch, scene.config, turn, later());
  ASSERT_TRUE(joined.ok()) << joined.status().text();
  auto all = (*joined)->all_gather(std::to_string(turn.number()), later());
  ASSERT_TRUE(all.ok()) << all.status().text();
  EXPECT_THAT(*all, ::testing::ElementsAre("2", "2"));
}

// One call of rank 0 has no secret, and another does not get its turn; the matching calls of rank 1 time out. The third calls
// match.
TEST(JoinJob, CallsThatFailEarlyAreCounted) {
  std::string folder = ::testing::TempDir() + "seto_job_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string root = "file:" + folder + "/root";
  int failed[2];
  ASSERT_EQ(pipe(failed), 0);
  ChildProcess first([&]() -> bool {
    Scene scene = scene_of(root, 0);
    InitOrder turn;
    scene.config.secret_file = folder + "/none";
    EXPECT_THAT(failure_of(scene, turn, later()), HasSubstr(scene.config.secret_file));
    {
      const InitOrder early;
      EXPECT_THAT(failure_of(scene, early, Deadline::after_ms(10)), HasSubstr("an earlier communicator"));
    }
    turn.end();
    scene.config.secret_file.clear();
    char byte = 0;
    EXPECT_EQ(read(failed[0], &byte, 1), 1);
    const InitOrder next;
    expect_to_meet(scene, next);
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  });
  ChildProcess second([&]() -> bool {
    const Scene scene = scene_of(root, 1);
    for (int call = 0; call < 2; ++call) {
      const InitOrder turn;
      EXPECT_THAT(failure_of(scene, turn, Deadline::after_ms(50)), HasSubstr("rank 0 has not written"));
    }
    EXPECT_EQ(write(failed[1], "f", 1), 1);
    const InitOrder next;
    expect_to_meet(scene, next);
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_TRUE(first.wait());
  EXPECT_TRUE(second.wait());
  for (const int end : failed) close(end);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace seto
