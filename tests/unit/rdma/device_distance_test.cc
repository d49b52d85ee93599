#include "transports/rdma/verbs/device_distance.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace seto::rdma {
namespace {

// The files that the kernel shows on a host of two nodes, 0 and 2, with a device on each of them.
class DeviceDistance : public ::testing::Test {
 protected:
  DeviceDistance() {
    sys = (std::filesystem::temp_directory_path() / "seto_sys_XXXXXX").string();
    EXPECT_NE(mkdtemp(sys.data()), nullptr);
    write("/devices/system/node/online", "0,2");
    write("/devices/system/node/node0/cpulist", "0-3,8-11");
    write("/devices/system/node/node2/cpulist", "4-7,12-15");
    write("/devices/system/node/node0/distance", "10 21");
    write("/devices/system/node/node2/distance", "22 10");
    write("/class/infiniband/mlx5_0/device/numa_node", "0");
    write("/class/infiniband/mlx5_1/device/numa_node", "2");
    write("/class/infiniband/rxe0/device/numa_node", "-1");
  }
  ~DeviceDistance() override { std::filesystem::remove_all(sys); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = sys + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  std::string sys;
};

TEST_F(DeviceDistance, IsThatOfTheNodes) {
  EXPECT_EQ(distance_of("mlx5_0", {0, 9}, sys), kNear);
  EXPECT_EQ(distance_of("mlx5_1", {0, 9}, sys), 21);
  EXPECT_EQ(distance_of("mlx5_0", {7, 12}, sys), 22);
  EXPECT_EQ(distance_of("mlx5_1", {7}, sys), kNear);
}

TEST_F(DeviceDistance, IsNearWhereMemoryMayBeAnywhere) {
  EXPECT_EQ(distance_of("mlx5_0", {0, 4}, sys), kNear);
  EXPECT_EQ(distance_of("mlx5_1", {0, 4}, sys), kNear);
  EXPECT_EQ(distance_of("mlx5_1", {}, sys), kNear);
  EXPECT_EQ(distance_of("mlx5_1", {99}, sys), kNear) << "no node has it";
}

TEST_F(DeviceDistance, IsNearWhereItIsUnknown) {
  EXPECT_EQ(distance_of("rxe0", {0}, sys), kNear);
  EXPECT_EQ(distance_of("none", {0}, sys), kNear);
  write("/devices/system/node/node0/distance", "10");
  EXPECT_EQ(distance_of("mlx5_1", {0}, sys), kNear);
  write("/devices/system/node/node0/distance", "10 7");
  EXPECT_EQ(distance_of("mlx5_1", {0}, sys), kNear);
  write("/devices/system/node/node0/distance", "10 4000");
  EXPECT_EQ(distance_of("mlx5_1", {0}, sys), 255);
  write("/devices/system/node/online", "what");
  EXPECT_EQ(distance_of("mlx5_1", {0}, sys), kNear);
  EXPECT_EQ(distance_of("mlx5_1", {0}, sys + "/nothing"), kNear);
}

TEST(OwnProcessors, AreThere) { EXPECT_FALSE(own_processors().empty()); }

}  // namespace
}  // namespace seto::rdma
