#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr std::size_t kCount = 64;
constexpr std::size_t kNegative = static_cast<std::size_t>(-1);

// The handles and buffers of a wrong call.
struct Desk {
  setoComm_t comm;
  int rank;
  int ranks;
  float* in;
  float* out;

  [[nodiscard]] float* misaligned(float* buffer) const { return reinterpret_cast<float*>(reinterpret_cast<char*>(buffer) + 1); }
};

struct WrongCall {
  const char* what;
  const char* named;  // what the text must name
  setoResult_t (*call)(const Desk&);
};

// C programs may pass any int. Sanitizers stop at values that the bits of the enumeration cannot hold.
#ifdef SETO_SANITIZED
setoDataType_t type_of(int value) { return static_cast<setoDataType_t>(12 + (value & 3)); }
setoRedOp_t op_of(int value) { return static_cast<setoRedOp_t>(value < 0 ? 0x7ffffff0 : value); }
#else
setoDataType_t type_of(int value) { return static_cast<setoDataType_t>(value); }
setoRedOp_t op_of(int value) { return static_cast<setoRedOp_t>(value); }
#endif

const WrongCall kWrongCalls[] = {
    {"all_reduce of null", "sendbuff",
     [](const Desk& d) { return setoAllReduce(nullptr, d.out, kCount, setoFloat32, setoSum, d.comm, nullptr); }},
    {"all_reduce to null", "recvbuff",
     [](const Desk& d) { return setoAllReduce(d.in, nullptr, kCount, setoFloat32, setoSum, d.comm, nullptr); }},
    {"all_reduce, misaligned input", "sendbuff",
     [](const Desk& d) { return setoAllReduce(d.misaligned(d.in), d.out, kCount, setoFloat32, setoSum, d.comm, nullptr); }},
    {"all_reduce, misaligned output", "recvbuff",
     [](const Desk& d) { return setoAllReduce(d.in, d.misaligned(d.out), kCount, setoFloat32, setoSum, d.comm, nullptr); }},
    {"all_reduce, negative count", "count",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kNegative, setoFloat32, setoSum, d.comm, nullptr); }},
    {"all_reduce, negative count of bytes", "count",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kNegative, setoInt8, setoSum, d.comm, nullptr); }},
    {"all_reduce, count that overflows to a small one", "count",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, (std::size_t{1} << 62) + 1, setoFloat32, setoSum, d.comm, nullptr); }},
    {"all_reduce past the end of memory", "sendbuff",
     [](const Desk& d) {
       return setoAllReduce(reinterpret_cast<float*>(~std::uintptr_t{0} - 63), d.out, kCount, setoFloat32, setoSum, d.comm,
                            nullptr);
     }},
    {"all_reduce, type -1", "datatype",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, type_of(-1), setoSum, d.comm, nullptr); }},
    {"all_reduce, type beyond the last", "datatype",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, setoNumTypes, setoSum, d.comm, nullptr); }},
    {"all_reduce, type 263", "datatype",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, type_of(263), setoSum, d.comm, nullptr); }},
    {"all_reduce, op -1", "op",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, setoFloat32, op_of(-1), d.comm, nullptr); }},
    {"all_reduce, op beyond the last", "op",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, setoFloat32, setoNumOps, d.comm, nullptr); }},
    {"all_reduce, op 1000", "op",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, setoFloat32, op_of(1000), d.comm, nullptr); }},
    {"all_reduce, the greatest op", "op",
     [](const Desk& d) { return setoAllReduce(d.in, d.out, kCount, setoFloat32, setoMaxRedOp, d.comm, nullptr); }},
    {"all_reduce, overlap", "overlap",
     [](const Desk& d) { return setoAllReduce(d.in, d.in + 1, kCount, setoFloat32, setoSum, d.comm, nullptr); }},
    {"reduce, root -1", "root",
     [](const Desk& d) { return setoReduce(d.in, d.out, kCount, setoFloat32, setoSum, -1, d.comm, nullptr); }},
    {"reduce, root beyond the last", "root",
     [](const Desk& d) { return setoReduce(d.in, d.out, kCount, setoFloat32, setoSum, d.ranks, d.comm, nullptr); }},
    {"reduce of null", "sendbuff",
     [](const Desk& d) { return setoReduce(nullptr, d.out, kCount, setoFloat32, setoSum, 0, d.comm, nullptr); }},
    {"broadcast, root -1", "root",
     [](const Desk& d) { return setoBroadcast(d.in, d.out, kCount, setoFloat32, -1, d.comm, nullptr); }},
    {"broadcast, root beyond the last", "root",
     [](const Desk& d) { return setoBroadcast(d.in, d.out, kCount, setoFloat32, d.ranks, d.comm, nullptr); }},
    {"broadcast to null", "recvbuff",
     [](const Desk& d) { return setoBroadcast(d.in, nullptr, kCount, setoFloat32, 0, d.comm, nullptr); }},
    {"broadcast, negative count", "count",
     [](const Desk& d) { return setoBroadcast(d.in, d.out, kNegative, setoFloat32, 0, d.comm, nullptr); }},
    {"bcast of null", "buff", [](const Desk& d) { return setoBcast(nullptr, kCount, setoFloat32, 0, d.comm, nullptr); }},
    {"all_gather of null", "sendbuff",
     [](const Desk& d) { return setoAllGather(nullptr, d.out, kCount, setoFloat32, d.comm, nullptr); }},
    {"all_gather to null", "recvbuff",
     [](const Desk& d) { return setoAllGather(d.in, nullptr, kCount, setoFloat32, d.comm, nullptr); }},
    {"all_gather, count that overflows with the ranks", "count",
     [](const Desk& d) {
       return setoAllGather(d.in, d.out, (std::size_t{1} << 62) / static_cast<std::size_t>(d.ranks) + 1, setoFloat32, d.comm,
                            nullptr);
     }},
    {"all_gather, overlap that is not in place", "overlap",
     [](const Desk& d) {
       return setoAllGather(d.out + static_cast<std::size_t>(d.rank) * kCount + 1, d.out, kCount, setoFloat32, d.comm, nullptr);
     }},
    {"reduce_scatter of null", "sendbuff",
     [](const Desk& d) { return setoReduceScatter(nullptr, d.out, kCount, setoFloat32, setoSum, d.comm, nullptr); }},
    {"reduce_scatter, overlap that is not in place", "overlap",
     [](const Desk& d) {
       return setoReduceScatter(d.in, d.in + static_cast<std::size_t>(d.rank) * kCount + 1, kCount, setoFloat32, setoSum, d.comm,
                                nullptr);
     }},
    {"reduce_scatter, op 7", "op",
     [](const Desk& d) { return setoReduceScatter(d.in, d.out, kCount, setoFloat32, op_of(7), d.comm, nullptr); }},
    {"all_to_all of null", "sendbuff",
     [](const Desk& d) { return setoAlltoAll(nullptr, d.out, kCount, setoFloat32, d.comm, nullptr); }},
    {"all_to_all in place", "overlap",
     [](const Desk& d) { return setoAlltoAll(d.in, d.in, kCount, setoFloat32, d.comm, nullptr); }},
    {"all_to_all, type 99", "datatype",
     [](const Desk& d) { return setoAlltoAll(d.in, d.out, kCount, type_of(99), d.comm, nullptr); }},
    {"gather, root 99", "root", [](const Desk& d) { return setoGather(d.in, d.out, kCount, setoFloat32, 99, d.comm, nullptr); }},
    {"gather of null", "sendbuff",
     [](const Desk& d) { return setoGather(nullptr, d.out, kCount, setoFloat32, 0, d.comm, nullptr); }},
    {"scatter, root -7", "root",
     [](const Desk& d) { return setoScatter(d.in, d.out, kCount, setoFloat32, -7, d.comm, nullptr); }},
    {"scatter to null", "recvbuff",
     [](const Desk& d) { return setoScatter(d.in, nullptr, kCount, setoFloat32, 0, d.comm, nullptr); }},
    {"all_gatherv without counts", "recvcounts",
     [](const Desk& d) { return setoAllGatherv(d.in, kCount, d.out, nullptr, nullptr, setoFloat32, d.comm, nullptr); }},
    {"all_gatherv, a negative count", "count",
     [](const Desk& d) {
       std::vector<std::size_t> counts(static_cast<std::size_t>(d.ranks), kCount);
       counts.back() = kNegative;
       return setoAllGatherv(d.in, counts[static_cast<std::size_t>(d.rank)], d.out, counts.data(), nullptr, setoFloat32, d.comm,
                             nullptr);
     }},
    {"all_gatherv, another own count", "sendcount",
     [](const Desk& d) {
       const std::vector<std::size_t> counts(static_cast<std::size_t>(d.ranks), kCount);
       return setoAllGatherv(d.in, kCount - 1, d.out, counts.data(), nullptr, setoFloat32, d.comm, nullptr);
     }},
    {"all_gatherv, a displacement beyond all addresses", "counts",
     [](const Desk& d) {
       const std::vector<std::size_t> counts(static_cast<std::size_t>(d.ranks), kCount);
       std::vector<std::size_t> displacements(static_cast<std::size_t>(d.ranks), 0);
       displacements.back() = kNegative;
       return setoAllGatherv(d.in, kCount, d.out, counts.data(), displacements.data(), setoFloat32, d.comm, nullptr);
     }},
    {"reduce_scatterv without counts", "recvcounts",
     [](const Desk& d) { return setoReduceScatterv(d.in, d.out, nullptr, setoFloat32, setoSum, d.comm, nullptr); }},
    {"config without magic", "magic",
     [](const Desk& d) {
       setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
       config.magic = 0;
       return setoAllReduceConfig(d.in, d.out, kCount, setoFloat32, setoSum, d.comm, nullptr, &config);
     }},
    {"config of no size", "size",
     [](const Desk& d) {
       setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
       config.size = 0;
       return setoAllReduceConfig(d.in, d.out, kCount, setoFloat32, setoSum, d.comm, nullptr, &config);
     }},
    {"algorithm 12345", "algorithm",
     [](const Desk& d) {
       setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
       config.algorithm = 12345;
       return setoAllReduceConfig(d.in, d.out, kCount, setoFloat32, setoSum, d.comm, nullptr, &config);
     }},
    {"codec 12345", "codec",
     [](const Desk& d) {
       setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
       config.codec = 12345;
       return setoAllReduceConfig(d.in, d.out, kCount, setoFloat32, setoSum, d.comm, nullptr, &config);
     }},
};

class BadArguments : public ::testing::TestWithParam<std::tuple<Kind, int>> {};

// Every rank makes the same wrong calls. Each is rejected at once with the name of the argument, and none affects the
// communicator.
TEST_P(BadArguments, AreNamedAndAffectNoLaterCall) {
  const auto [kind, ranks] = GetParam();
  run_ranks(kind, ranks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<float> in(kCount * static_cast<std::size_t>(seat.ranks + 1));
    std::vector<float> out(in.size());
    const Desk desk{comm, seat.rank, seat.ranks, in.data(), out.data()};
    for (const WrongCall& wrong : kWrongCalls) {
      const Answer refused = answer(wrong.call(desk));
      EXPECT_EQ(refused.code, setoInvalidArgument) << wrong.what << ": " << refused;
      EXPECT_TRUE(refused.says(wrong.named)) << wrong.what << ": " << refused;
    }
    expect_works(comm, seat);
    setoResult_t state = setoSuccess;
    EXPECT_EQ(setoCommGetAsyncError(comm, &state), setoSuccess);
    EXPECT_EQ(state, setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, BadArguments,
                         ::testing::Values(std::tuple{Kind::processes, 1}, std::tuple{Kind::processes, 2},
                                           std::tuple{Kind::processes, 3}, std::tuple{Kind::threads, 2},
                                           std::tuple{Kind::threads, 4}),
                         [](const auto& one) {
                           return name_of(std::get<0>(one.param)) + std::to_string(std::get<1>(one.param));
                         });

// Runs in a child, because the test's own process must not use the library.
void alone(const std::function<void()>& body) {
  run_ranks(Kind::processes, 1, [&](const Seat&) { body(); });
}

TEST(BadHandles, AreNamed) {
  alone([] {
    float value = 0;
    const Answer null = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, nullptr, nullptr));
    EXPECT_EQ(null.code, setoInvalidArgument);
    EXPECT_TRUE(null.says("comm")) << null;
    alignas(64) std::uint64_t garbage[64] = {};
    const Answer wrong = answer(setoBarrier(reinterpret_cast<setoComm_t>(garbage), nullptr));
    EXPECT_EQ(wrong.code, setoInvalidArgument);
    EXPECT_TRUE(wrong.says("comm")) << wrong;
    EXPECT_EQ(setoCommDestroy(nullptr), setoInvalidArgument);
    EXPECT_EQ(setoCommAbort(nullptr), setoInvalidArgument);
    EXPECT_EQ(setoCommFinalize(nullptr), setoInvalidArgument);
    EXPECT_EQ(setoGetUniqueId(nullptr), setoInvalidArgument);
    EXPECT_EQ(setoCommInitAll(nullptr, 2, nullptr), setoInvalidArgument);
    int number = 0;
    EXPECT_EQ(setoCommCount(nullptr, &number), setoInvalidArgument);
    EXPECT_EQ(setoCommUserRank(nullptr, &number), setoInvalidArgument);
    setoResult_t state = setoSuccess;
    EXPECT_EQ(setoCommGetAsyncError(nullptr, &state), setoInvalidArgument);
    EXPECT_EQ(setoMemFree(&value), setoInvalidArgument);
    EXPECT_EQ(setoMemAlloc(nullptr, 8), setoInvalidArgument);
    EXPECT_EQ(setoStreamDestroy(reinterpret_cast<setoStream_t>(garbage)), setoInvalidArgument);
    EXPECT_EQ(setoGroupEnd(), setoInvalidUsage) << "a group that was never started";
  });
}

TEST(BadHandles, InvalidStreamsAreNamed) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    alignas(64) std::uint64_t garbage[64] = {};
    float value = 1;
    const Answer wrong =
        answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, reinterpret_cast<setoStream_t>(garbage)));
    EXPECT_EQ(wrong.code, setoInvalidArgument) << wrong;
    expect_works(comm, seat);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST(BadInit, RanksAndSizesAreNamed) {
  alone([] {
    setoUniqueId id;
    ASSERT_EQ(setoGetUniqueId(&id), setoSuccess);
    setoComm_t comm = nullptr;
    for (const int ranks : {0, -1, -2'000'000'000, 2'000'000'000}) {
      const Answer refused = answer(setoCommInitRank(&comm, ranks, id, 0));
      EXPECT_EQ(refused.code, setoInvalidArgument) << ranks << ": " << refused;
      EXPECT_TRUE(refused.says("nranks")) << refused;
      EXPECT_EQ(comm, nullptr);
    }
    for (const int rank : {-1, 2, 1000}) {
      const Answer refused = answer(setoCommInitRank(&comm, 2, id, rank));
      EXPECT_EQ(refused.code, setoInvalidArgument) << rank << ": " << refused;
      EXPECT_TRUE(refused.says("rank")) << refused;
    }
    EXPECT_EQ(setoCommInitRank(nullptr, 2, id, 0), setoInvalidArgument);
    setoUniqueId damaged{};
    const Answer refused = answer(setoCommInitRank(&comm, 2, damaged, 0));
    EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.magic = 1;
    EXPECT_EQ(setoCommInitRankConfig(&comm, 2, id, 0, &config), setoInvalidArgument);
    config = SETO_CONFIG_INITIALIZER;
    config.blocking = static_cast<setoSwitch_t>(3);
    EXPECT_EQ(setoCommInitRankConfig(&comm, 2, id, 0, &config), setoInvalidArgument);
    EXPECT_EQ(comm, nullptr);
  });
}

// Ranks 0 and 1 both claim to be rank 0, or claim different sizes. Each fails at once with the reason.
class BadJoin : public ::testing::TestWithParam<Kind> {};

TEST_P(BadJoin, DuplicateRankIsNamedOnEveryRank) {
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    setoComm_t comm = nullptr;
    const Answer refused = answer(setoCommInitRankConfig(&comm, 3, seat.id(), seat.rank == 2 ? 1 : seat.rank, &config));
    EXPECT_NE(refused.code, setoSuccess);
    EXPECT_TRUE(refused.says("rank 1")) << "rank " << seat.rank << ": " << refused;
    EXPECT_TRUE(refused.says("twice")) << "rank " << seat.rank << ": " << refused;
    EXPECT_EQ(comm, nullptr);
    seat.meet(1);  // the process that made the id stays until all ranks have failed
  });
}

TEST_P(BadJoin, DifferentSizesAreNamedOnEveryRank) {
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    setoComm_t comm = nullptr;
    const Answer refused = answer(setoCommInitRankConfig(&comm, seat.rank == 2 ? 4 : 3, seat.id(), seat.rank, &config));
    EXPECT_NE(refused.code, setoSuccess);
    EXPECT_TRUE(refused.says("rank 2 says that the communicator has 4 ranks") || refused.says("rank 2 says 4"))
        << "rank " << seat.rank << ": " << refused;
    EXPECT_EQ(comm, nullptr);
    seat.meet(1);
  });
}

TEST_P(BadJoin, MissingRankIsNamedAtTheDeadline) {
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    const setoUniqueId id = seat.id();
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank != 2) {
      setoConfig_t config = config_of_test();
      config.initTimeoutMs = 3000;  // the two ranks must meet within it
      setoComm_t comm = nullptr;
      const Answer refused = answer(setoCommInitRankConfig(&comm, 3, id, seat.rank, &config));
      EXPECT_EQ(refused.code, setoTimeout) << refused;
      EXPECT_TRUE(refused.says("rank 2")) << "rank " << seat.rank << ": " << refused;
    }
    seat.meet(2);
  });
}

TEST_P(BadJoin, UsedIdIsRefused) {
  run_ranks(GetParam(), 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    seat.meet(1);
    setoConfig_t config = config_of_test();
    config.initTimeoutMs = 2000;
    setoComm_t second = nullptr;
    const Answer refused = answer(setoCommInitRankConfig(&second, 2, seat.id(), seat.rank, &config));
    EXPECT_NE(refused.code, setoSuccess) << "an id serves one communicator";
    EXPECT_EQ(second, nullptr);
    seat.meet(2);
    expect_works(comm, seat);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, BadJoin, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

TEST(BadEnvironment, UnknownVariableIsNamedWithTheNearest) {
  alone([] {
    setenv("SETO_OPERATION_TIMEOUT", "5", 1);
    setoComm_t comm = nullptr;
    const Answer refused = answer(setoCommInitAll(&comm, 1, nullptr));
    EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
    EXPECT_TRUE(refused.says("SETO_OPERATION_TIMEOUT_MS")) << refused;
    unsetenv("SETO_OPERATION_TIMEOUT");
    setenv("SETO_SLOT_DEPTH", "minus one", 1);
    const Answer value = answer(setoCommInitAll(&comm, 1, nullptr));
    EXPECT_EQ(value.code, setoInvalidArgument) << value;
    EXPECT_TRUE(value.says("SETO_SLOT_DEPTH")) << value;
    unsetenv("SETO_SLOT_DEPTH");
    EXPECT_EQ(setoCommInitAll(&comm, 1, nullptr), setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// One rank has a misspelled variable. The others must learn its name before their deadline.
TEST(BadEnvironment, ErrorOfOneRankIsNamedOnTheOthers) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    config.initTimeoutMs = 500;
    const setoUniqueId id = seat.id();
    if (seat.rank == 1) setenv("SETO_SPINN", "5", 1);
    setoComm_t comm = nullptr;
    const Answer refused = answer(setoCommInitRankConfig(&comm, 2, id, seat.rank, &config));
    EXPECT_NE(refused.code, setoSuccess);
    EXPECT_TRUE(refused.says(seat.rank == 1 ? "SETO_SPIN" : "rank 1")) << refused;
    seat.meet(1);
  });
}

}  // namespace
}  // namespace seto::testing
