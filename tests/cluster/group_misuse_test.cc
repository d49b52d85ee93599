#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

TEST(GroupMisuse, IsNamedAndAffectsNoLaterCall) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(setoGroupEnd(), setoInvalidUsage) << "never started";
    // A wrong call in a group: the group's result is the failure, on every rank.
    std::vector<float> values(100, 1.0F);
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    (void)setoAllReduce(values.data(), values.data(), values.size(), static_cast<setoDataType_t>(13), setoSum, comm, nullptr);
    const Answer ended = answer(setoGroupEnd());
    EXPECT_EQ(ended.code, setoInvalidArgument) << ended;
    EXPECT_TRUE(ended.says("datatype")) << ended;
    // An empty nested group.
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoGroupEnd(), setoSuccess);
    EXPECT_EQ(setoGroupEnd(), setoSuccess);
    // A message to an invalid peer.
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    (void)setoSend(values.data(), 1, setoFloat32, 2, comm, nullptr);
    const Answer peer = answer(setoGroupEnd());
    EXPECT_EQ(peer.code, setoInvalidArgument) << peer;
    expect_works(comm, seat);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST(GroupMisuse, DestroyInAGroupIsNamedAndDoesNotCrash) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> values(100, 1.0F);
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    ASSERT_EQ(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr), setoSuccess);
    (void)setoCommDestroy(comm);
    const Answer ended = answer(setoGroupEnd());
    EXPECT_NE(ended.code, setoSuccess) << "its communicator is gone";
    EXPECT_NE(ended.code, setoInternalError) << ended;
  });
}

}  // namespace
}  // namespace seto::testing
