#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

// The arguments of any collective.
struct Shape {
  const char* collective = "all_reduce";
  std::size_t count = 1000;
  setoDataType_t type = setoFloat32;
  setoRedOp_t op = setoSum;
  int root = 0;
};

// As long as any of these calls needs, and no longer: under a sanitizer most of a test's time would go into the pages of unused
// buffers.
struct Buffers {
  explicit Buffers(int ranks, std::initializer_list<Shape> shapes) {
    std::size_t elements = 0;  // of 8 bytes, the longest type
    for (const Shape& shape : shapes)
      elements = std::max(elements, shape.count * (all_ranks_count(shape) ? static_cast<std::size_t>(ranks) : 1));
    in.assign(elements, 1.0);
    out.resize(elements);
  }
  static bool all_ranks_count(const Shape& shape) {
    const std::string name = shape.collective;
    return name != "all_reduce" && name != "broadcast" && name != "reduce";
  }

  std::vector<double> in;
  std::vector<double> out;
};

setoResult_t call(const Shape& shape, Buffers& buffers, setoComm_t comm) {
  const std::string name = shape.collective;
  const void* in = buffers.in.data();
  void* out = buffers.out.data();
  if (name == "all_reduce") return setoAllReduce(in, out, shape.count, shape.type, shape.op, comm, nullptr);
  if (name == "all_gather") return setoAllGather(in, out, shape.count, shape.type, comm, nullptr);
  if (name == "reduce_scatter") return setoReduceScatter(in, out, shape.count, shape.type, shape.op, comm, nullptr);
  if (name == "all_to_all") return setoAlltoAll(in, out, shape.count, shape.type, comm, nullptr);
  if (name == "broadcast") return setoBroadcast(in, out, shape.count, shape.type, shape.root, comm, nullptr);
  if (name == "reduce") return setoReduce(in, out, shape.count, shape.type, shape.op, shape.root, comm, nullptr);
  if (name == "gather") return setoGather(in, out, shape.count, shape.type, shape.root, comm, nullptr);
  if (name == "scatter") return setoScatter(in, out, shape.count, shape.type, shape.root, comm, nullptr);
  return setoBarrier(comm, nullptr);
}

// A rank that only sends may have ended its call before another rank calls. Then it learns of the mismatch in one of its next
// calls, and at the next barrier at the latest.
Answer call_and_settle(const Shape& shape, Buffers& buffers, setoComm_t comm) {
  const Answer first = answer(call(shape, buffers, comm));
  return first.code != setoSuccess ? first : answer(setoBarrier(comm, nullptr));
}

bool one_way(const Shape& shape) {
  const std::string name = shape.collective;
  return name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter";
}

struct Case {
  const char* name;
  Shape usual;
  Shape odd;
  const char* said;  // part of the texts of both sides, about the differing rank
};

const Case kCases[] = {
    {"AllReduceCount", {}, {"all_reduce", 1001}, "1001"},
    {"AllReduceCountSmall", {"all_reduce", 1}, {"all_reduce", 2}, "all_reduce of 2 float"},
    {"AllReduceCountLarge", {"all_reduce", 1 << 20}, {"all_reduce", (1 << 20) - 1}, "1048575"},
    {"AllReduceCountZero", {"all_reduce", 5}, {"all_reduce", 0}, "all_reduce of 0 float"},
    {"AllReduceCountAllButOneZero", {"all_reduce", 0}, {"all_reduce", 5}, "all_reduce of 5 float"},
    {"AllReduceType", {}, {"all_reduce", 1000, setoInt32}, "int32"},
    {"AllReduceTypeLarge", {"all_reduce", 500'000}, {"all_reduce", 500'000, setoInt32}, "int32"},
    {"AllReduceOp", {}, {"all_reduce", 1000, setoFloat32, setoMax}, "max"},
    {"AllReduceOpOne", {"all_reduce", 1}, {"all_reduce", 1, setoFloat32, setoProd}, "prod"},
    {"AllReduceAgainstAllGather", {}, {"all_gather", 1000}, "all_gather"},
    {"AllReduceAgainstBroadcast", {}, {"broadcast", 1000}, "broadcast"},
    {"AllReduceAgainstBarrier", {}, {"barrier"}, "barrier"},
    {"BarrierAgainstAllReduce", {"barrier"}, {}, "all_reduce"},
    {"ReduceScatterCount", {"reduce_scatter", 700}, {"reduce_scatter", 701}, "701"},
    {"ReduceScatterOp", {"reduce_scatter", 700}, {"reduce_scatter", 700, setoFloat32, setoMin}, "min"},
    {"AllGatherCount", {"all_gather", 700}, {"all_gather", 699}, "699"},
    {"AllGatherType", {"all_gather", 700}, {"all_gather", 700, setoFloat64}, "double"},
    {"AllToAllCount", {"all_to_all", 300}, {"all_to_all", 30}, "all_to_all of 30 float"},
    {"AllToAllAgainstReduceScatter", {"all_to_all", 300}, {"reduce_scatter", 300}, "reduce_scatter"},
    {"BroadcastCount", {"broadcast", 400}, {"broadcast", 401}, "401"},
    {"BroadcastCountLarge", {"broadcast", 1 << 20}, {"broadcast", 1 << 19}, "524288"},
    {"BroadcastType", {"broadcast", 400}, {"broadcast", 400, setoInt8}, "int8"},
    {"BroadcastRoot", {"broadcast", 400}, {"broadcast", 400, setoFloat32, setoSum, 1}, "root 1"},
    {"BroadcastRootLarge", {"broadcast", 1 << 20}, {"broadcast", 1 << 20, setoFloat32, setoSum, 1}, "root 1"},
    {"BroadcastAgainstReduce", {"broadcast", 400}, {"reduce", 400}, "reduce"},
    {"ReduceRoot", {"reduce", 400}, {"reduce", 400, setoFloat32, setoSum, 1}, "root 1"},
    {"ReduceCount", {"reduce", 400}, {"reduce", 4}, "reduce of 4 float"},
    {"GatherRoot", {"gather", 400}, {"gather", 400, setoFloat32, setoSum, 1}, "root 1"},
    {"GatherCount", {"gather", 400}, {"gather", 404}, "404"},
    {"ScatterRoot", {"scatter", 400}, {"scatter", 400, setoFloat32, setoSum, 1}, "root 1"},
    {"ScatterCount", {"scatter", 400}, {"scatter", 4000}, "4000"},
};

std::ostream& operator<<(std::ostream& stream, const Case& one) { return stream << one.name; }

using Parameters = std::tuple<Kind, int, Case>;
class Mismatch : public ::testing::TestWithParam<Parameters> {};

// The last rank differs from the others. No rank hangs, all learn the calls of both sides, and the reason stays.
TEST_P(Mismatch, IsNamedOnEveryRank) {
  const auto& [kind, ranks, one] = GetParam();
  run_ranks(kind, ranks, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    Buffers buffers(ranks, {one.usual, one.odd});
    const int odd_rank = seat.ranks - 1;
    const bool odd = seat.rank == odd_rank;
    const Shape& shape = odd ? one.odd : one.usual;
    const Answer refused =
        one_way(one.usual) || one_way(one.odd) ? call_and_settle(shape, buffers, comm) : answer(call(shape, buffers, comm));
    EXPECT_EQ(refused.code, setoRemoteError) << "rank " << seat.rank << ": " << refused;
    EXPECT_TRUE(refused.says("rank " + std::to_string(odd_rank))) << "rank " << seat.rank << ": " << refused;
    EXPECT_TRUE(refused.says(one.said)) << "rank " << seat.rank << ": " << refused;
    setoResult_t state = setoSuccess;
    EXPECT_EQ(setoCommGetAsyncError(comm, &state), setoSuccess);
    EXPECT_EQ(state, setoRemoteError);
    const Answer again = answer(setoBarrier(comm, nullptr));
    EXPECT_EQ(again.code, setoRemoteError);
    EXPECT_EQ(again.text, refused.text) << "the first reason stays";
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

std::string test_name(const ::testing::TestParamInfo<Parameters>& one) {
  return std::get<2>(one.param).name + std::string("_") + name_of(std::get<0>(one.param)) +
         std::to_string(std::get<1>(one.param));
}

INSTANTIATE_TEST_SUITE_P(TwoProcesses, Mismatch,
                         ::testing::Combine(::testing::Values(Kind::processes), ::testing::Values(2),
                                            ::testing::ValuesIn(kCases)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(ThreeThreads, Mismatch,
                         ::testing::Combine(::testing::Values(Kind::threads), ::testing::Values(3), ::testing::ValuesIn(kCases)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(FourProcesses, Mismatch,
                         ::testing::Combine(::testing::Values(Kind::processes), ::testing::Values(4),
                                            ::testing::ValuesIn(kCases)),
                         test_name);

// ---- a call that only one rank rejects ----

struct Rejected {
  const char* name;
  Shape shape;
};

const Rejected kRejected[] = {
    {"AllReduce", {"all_reduce", 1000}},         {"AllReduceOne", {"all_reduce", 1}},
    {"AllReduceLarge", {"all_reduce", 1 << 20}}, {"AllGather", {"all_gather", 1000}},
    {"ReduceScatter", {"reduce_scatter", 1000}}, {"ReduceScatterLarge", {"reduce_scatter", 200'000}},
    {"AllToAll", {"all_to_all", 1000}},
};

using RejectedParameters = std::tuple<Kind, int, Rejected>;
class LoneRejection : public ::testing::TestWithParam<RejectedParameters> {};

// The call ends on every rank, which learns which rank's call was wrong and why, and the next call is right again.
TEST_P(LoneRejection, EndsOnAllRanksAndAffectsNoLaterCall) {
  const auto& [kind, ranks, one] = GetParam();
  for (int wrong_rank = 0; wrong_rank < ranks; wrong_rank += ranks - 1) {
    run_ranks(kind, ranks, [&](const Seat& seat) {
      const setoComm_t comm = seat.join();
      ASSERT_NE(comm, nullptr);
      Buffers buffers(ranks, {one.shape});
      for (int round = 0; round < 3; ++round) {
        Shape shape = one.shape;
        if (seat.rank == wrong_rank) shape.type = static_cast<setoDataType_t>(13);
        const Answer refused = answer(call(shape, buffers, comm));
        if (seat.rank == wrong_rank) {
          EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
        } else {
          EXPECT_EQ(refused.code, setoRemoteError) << "rank " << seat.rank << ": " << refused;
          EXPECT_TRUE(refused.says("rank " + std::to_string(wrong_rank))) << "rank " << seat.rank << ": " << refused;
        }
        EXPECT_TRUE(refused.says("datatype")) << "rank " << seat.rank << ": " << refused;
        // The same shape again: its streams are in the state in which the rejected call left them.
        const Answer right = answer(call(one.shape, buffers, comm));
        EXPECT_EQ(right.code, setoSuccess) << "rank " << seat.rank << ": " << right;
        expect_works(comm, seat);
      }
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
  }
}

// More rejected calls in a row than a rank's board has notes, while the other ranks are late.
TEST_P(LoneRejection, ManyInARow) {
  const auto& [kind, ranks, one] = GetParam();
  run_ranks(kind, ranks, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    Buffers buffers(ranks, {one.shape});
    for (int round = 0; round < 25; ++round) {
      Shape shape = one.shape;
      if (seat.rank == 0) shape.op = static_cast<setoRedOp_t>(1000);
      if (seat.rank == 0 && (one.name == std::string("AllGather") || one.name == std::string("AllToAll")))
        shape.type = setoNumTypes;
      const Answer refused = answer(call(shape, buffers, comm));
      ASSERT_EQ(refused.code, seat.rank == 0 ? setoInvalidArgument : setoRemoteError)
          << "round " << round << ", rank " << seat.rank << ": " << refused;
    }
    expect_works(comm, seat);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

std::string rejected_name(const ::testing::TestParamInfo<RejectedParameters>& one) {
  return std::get<2>(one.param).name + std::string("_") + name_of(std::get<0>(one.param)) +
         std::to_string(std::get<1>(one.param));
}

INSTANTIATE_TEST_SUITE_P(TwoProcesses, LoneRejection,
                         ::testing::Combine(::testing::Values(Kind::processes), ::testing::Values(2),
                                            ::testing::ValuesIn(kRejected)),
                         rejected_name);
INSTANTIATE_TEST_SUITE_P(ThreeProcesses, LoneRejection,
                         ::testing::Combine(::testing::Values(Kind::processes), ::testing::Values(3),
                                            ::testing::ValuesIn(kRejected)),
                         rejected_name);
INSTANTIATE_TEST_SUITE_P(FourThreads, LoneRejection,
                         ::testing::Combine(::testing::Values(Kind::threads), ::testing::Values(4),
                                            ::testing::ValuesIn(kRejected)),
                         rejected_name);

// Two ranks disagree about a send and its receive.
TEST(MismatchOfMessages, LengthIsNamedOnBothSides) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> data(100'000, 1.0F);
    const Answer refused = answer(seat.rank == 0 ? setoSend(data.data(), 100'000, setoFloat32, 1, comm, nullptr)
                                                 : setoRecv(data.data(), 99'999, setoFloat32, 0, comm, nullptr));
    EXPECT_NE(refused.code, setoSuccess);
    EXPECT_TRUE(refused.says("100000") || refused.says("400000")) << refused;
    EXPECT_TRUE(refused.says("99999") || refused.says("399996")) << refused;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Settings that affect how calls are planned must agree. A difference is rejected with both values.
TEST(MismatchOfSettings, IsNamedOnEveryRank) {
  for (const auto& [variable, value, said] : {std::tuple{"SETO_SLICE_BYTES", "64K", "is 'auto' on rank 0 and '64K' on rank 1"},
                                              std::tuple{"SETO_ALGORITHM", "ring", "is not set on rank 0 and 'ring' on rank 1"},
                                              std::tuple{"SETO_DETERMINISTIC", "on", "is 'off' on rank 0 and 'on' on rank 1"}})
    run_ranks(Kind::processes, 3, [&](const Seat& seat) {
      if (seat.rank == 1) setenv(variable, value, 1);
      setoConfig_t config = config_of_test();
      setoComm_t comm = nullptr;
      const Answer refused = answer(setoCommInitRankConfig(&comm, seat.ranks, seat.id(), seat.rank, &config));
      EXPECT_EQ(refused.code, setoInvalidUsage) << refused;
      EXPECT_TRUE(refused.says(variable) && refused.says(said)) << refused;
      seat.meet(1);  // the process that made the id stays until all ranks have failed
    });
}

// A setting in the config of a call is part of the call.
TEST(MismatchOfSettings, OfOneCallIsNamedOnEveryRank) {
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    Buffers buffers(seat.ranks, {{"all_reduce", 1000}});
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    ASSERT_EQ(setoAlgorithmId(seat.rank == 1 ? "ring" : "two_shot", &call.algorithm), setoSuccess);
    const Answer refused =
        answer(setoAllReduceConfig(buffers.in.data(), buffers.out.data(), 1000, setoFloat64, setoSum, comm, nullptr, &call));
    EXPECT_EQ(refused.code, setoRemoteError) << refused;
    EXPECT_TRUE(refused.says("plan it differently") || refused.says("has left the communicator")) << refused;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// Calls queued after a failure send nothing, so no rank takes the failed operation for complete.
TEST(LateRank, LearnsOfAFailureAlthoughOthersQueuedMoreCalls) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    float value = 1;
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    if (seat.rank == 0) {
      call.deadlineMs = 100;
      ASSERT_EQ(setoAllReduceConfig(&value, &value, 1, setoFloat32, setoSum, comm, stream, &call), setoSuccess);
      EXPECT_EQ(setoStreamWait(stream, 1, 0), setoTimeout);
      for (int more = 0; more < 3; ++more)
        ASSERT_EQ(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, stream), setoSuccess);
      EXPECT_EQ(setoStreamWait(stream, 4, 0), setoTimeout) << "the first failure";
      ASSERT_TRUE(seat.meet(1));
    } else {
      ASSERT_TRUE(seat.meet(1));
      (void)setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr);  // all its data may have been sent
      const Answer second = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
      EXPECT_EQ(second.code, setoRemoteError) << second;
    }
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// A call that is wrong on the root, then as many right calls as the root can run ahead: a late rank still learns of the
// rejection.
TEST(LateRank, LearnsOfARejectionAlthoughOthersContinued) {
  run_ranks(Kind::processes, 6, [](const Seat& seat) {
    setenv("SETO_ALGORITHM", "ring", 1);
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    Buffers buffers(seat.ranks, {{"broadcast", 10}});
    if (seat.rank == 5) {
      ASSERT_TRUE(seat.meet(1));
    }
    const Answer first = seat.rank == 0 ? answer(setoBroadcast(nullptr, nullptr, 10, setoFloat32, 0, comm, nullptr))
                                        : answer(call({"broadcast", 10}, buffers, comm));
    EXPECT_NE(first.code, setoSuccess) << first;
    EXPECT_TRUE(seat.rank == 0 || first.says("rank 0 rejected its call")) << first;
    if (seat.rank != 5) {
      ASSERT_TRUE(seat.meet(1));
    }
    for (int i = 0; i < 30; ++i) EXPECT_EQ(answer(call({"broadcast", 10}, buffers, comm)).code, setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing
