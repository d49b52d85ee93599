#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

setoConfig_t fresh() { return SETO_CONFIG_INITIALIZER; }

SETO_TEST_ALONE(ApiMisuse, every_entry_takes_null_for_an_answer) {
  setoUniqueId id{};
  setoResult_t asynchronous{};
  int number = 0;
  float value = 0;
  void* memory = nullptr;
  setoRedOp_t op{};
  setoComm_t comm = nullptr;
  const std::size_t counts[] = {0};
  const std::vector<setoResult_t> results = {
      setoGetVersion(nullptr),
      setoGetUniqueId(nullptr),
      setoCodecId(nullptr, &number),
      setoCodecId("none", nullptr),
      setoAlgorithmId(nullptr, &number),
      setoAlgorithmId("ring", nullptr),
      setoCommInitRank(nullptr, 1, id, 0),
      setoCommInitRankConfig(nullptr, 1, id, 0, nullptr),
      setoCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr),
      setoCommInitAll(nullptr, 1, nullptr),
      setoCommSplit(nullptr, 0, 0, &comm, nullptr),
      setoCommShrink(nullptr, nullptr, 0, &comm, nullptr, 0),
      setoCommGetUniqueId(nullptr, &id),
      setoCommFinalize(nullptr),
      setoCommDestroy(nullptr),
      setoCommAbort(nullptr),
      setoCommRevoke(nullptr, 0),
      setoCommGetAsyncError(nullptr, &asynchronous),
      setoCommCount(nullptr, &number),
      setoCommCuDevice(nullptr, &number),
      setoCommUserRank(nullptr, &number),
      setoMemAlloc(nullptr, 8),
      setoCommRegister(nullptr, &value, 4, &memory),
      setoCommDeregister(nullptr, nullptr),
      setoRedOpCreatePreMulSum(&op, &value, setoFloat32, setoScalarHostImmediate, nullptr),
      setoRedOpDestroy(setoSum, nullptr),
      setoAllReduce(&value, &value, 1, setoFloat32, setoSum, nullptr, nullptr),
      setoReduce(&value, &value, 1, setoFloat32, setoSum, 0, nullptr, nullptr),
      setoBroadcast(&value, &value, 1, setoFloat32, 0, nullptr, nullptr),
      setoBcast(&value, 1, setoFloat32, 0, nullptr, nullptr),
      setoReduceScatter(&value, &value, 1, setoFloat32, setoSum, nullptr, nullptr),
      setoAllGather(&value, &value, 1, setoFloat32, nullptr, nullptr),
      setoAlltoAll(&value, &value, 1, setoFloat32, nullptr, nullptr),
      setoGather(&value, &value, 1, setoFloat32, 0, nullptr, nullptr),
      setoScatter(&value, &value, 1, setoFloat32, 0, nullptr, nullptr),
      setoBarrier(nullptr, nullptr),
      setoAllToAllv(&value, counts, nullptr, &value, counts, nullptr, setoFloat32, nullptr, nullptr),
      setoAllGatherv(&value, 0, &value, counts, nullptr, setoFloat32, nullptr, nullptr),
      setoReduceScatterv(&value, &value, counts, setoFloat32, setoSum, nullptr, nullptr),
      setoContextCreate(nullptr, nullptr),
      setoContextDestroy(nullptr),
      setoExplain(nullptr, setoFormatText, nullptr, 0, nullptr),
      setoCommDump(nullptr, setoFormatText, nullptr, 0, nullptr),
  };
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], setoInvalidArgument) << "entry " << i;
  EXPECT_EQ(setoMemFree(nullptr), setoSuccess);
  EXPECT_NE(setoGetLastError(nullptr), nullptr);
}

SETO_TEST_ALONE(ApiMisuse, destroyed_handles_are_not_used) {
  alignas(64) static unsigned char garbage[4096];
  EXPECT_TRUE(failed(setoCommFinalize(reinterpret_cast<setoComm_t>(garbage)), setoInvalidArgument, "not a communicator"));
  EXPECT_TRUE(failed(setoContextDestroy(reinterpret_cast<setoContext_t>(garbage)), setoInvalidArgument, "not a context"));
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(setoCommInitAll(&comm, 1, nullptr)));
  ASSERT_TRUE(succeeded(setoCommDestroy(comm)));
  float value = 1;
  EXPECT_TRUE(failed(setoCommDestroy(comm), setoInvalidArgument, "was it destroyed?"));
  EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr), setoInvalidArgument, "destroyed?"));
}

// Nothing can be read at these addresses.
SETO_TEST_ALONE(ApiMisuse, garbage_handles_are_refused_unread) {
  float value = 1;
  int number = 0;
  std::size_t size = 0;
  for (const std::uintptr_t address : {std::uintptr_t{1}, std::uintptr_t{4096}, ~std::uintptr_t{0}}) {
    const auto comm = reinterpret_cast<setoComm_t>(address);
    EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr), setoInvalidArgument,
                       "is not a communicator"));
    EXPECT_TRUE(failed(setoSend(&value, 1, setoFloat32, 0, comm, nullptr), setoInvalidArgument, "is not a communicator"));
    EXPECT_TRUE(failed(setoCommCount(comm, &number), setoInvalidArgument, "is not a communicator"));
    EXPECT_TRUE(failed(setoCommFinalize(comm), setoInvalidArgument, "is not a communicator"));
    EXPECT_TRUE(failed(setoCommDestroy(comm), setoInvalidArgument, "is not a communicator"));
    EXPECT_TRUE(failed(setoCommAbort(comm), setoInvalidArgument, "is not a communicator"));
    EXPECT_NE(setoGetLastError(comm), nullptr);
    EXPECT_TRUE(failed(setoContextDestroy(reinterpret_cast<setoContext_t>(address)), setoInvalidArgument, "is not a context"));
    EXPECT_TRUE(
        failed(setoErrorFeedbackSize(reinterpret_cast<setoErrorFeedback_t>(address), &size), setoInvalidArgument, "not a state"));
  }
}

SETO_TEST_ALONE(ApiMisuse, a_buffer_is_deregistered_once) {
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(setoCommInitAll(&comm, 1, nullptr)));
  float value = 1;
  void* handle = nullptr;
  EXPECT_TRUE(failed(setoCommRegister(comm, nullptr, 4, &handle), setoInvalidArgument, "buff"));
  EXPECT_TRUE(failed(setoCommRegister(comm, &value, 4, nullptr), setoInvalidArgument, "handle"));
  ASSERT_TRUE(succeeded(setoCommRegister(comm, &value, 4, &handle)));
  EXPECT_TRUE(succeeded(setoCommDeregister(comm, handle)));
  EXPECT_TRUE(failed(setoCommDeregister(comm, handle), setoInvalidArgument, "not from setoCommRegister"));
  EXPECT_TRUE(succeeded(setoCommDeregister(comm, nullptr)));
  ASSERT_TRUE(succeeded(setoCommRegister(comm, &value, 4, &handle)));
  EXPECT_TRUE(succeeded(setoCommDestroy(comm))) << "its names end with it";
}

SETO_TEST_ALONE(ApiMisuse, init_names_the_wrong_argument) {
  setoComm_t comm = nullptr;
  const setoUniqueId id{};
  EXPECT_TRUE(failed(setoCommInitRank(&comm, 0, id, 0), setoInvalidArgument, "nranks: 0"));
  EXPECT_TRUE(failed(setoCommInitRank(&comm, 2, id, 2), setoInvalidArgument, "rank: 2"));
  EXPECT_TRUE(failed(setoCommInitRank(&comm, 2, id, -1), setoInvalidArgument, "rank: -1"));
  EXPECT_NE(setoCommInitRank(&comm, 2, id, 0), setoSuccess);  // an id of zeros is invalid
  EXPECT_EQ(comm, nullptr);
}

SETO_TEST_ALONE(ApiMisuse, config_structs_are_checked) {
  setoComm_t comm = nullptr;
  const setoUniqueId id{};
  const auto init = [&](setoConfig_t config) { return setoCommInitRankConfig(&comm, 1, id, 0, &config); };
  setoConfig_t config = fresh();
  config.magic = 0;
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "magic"));
  config = fresh();
  config.size = 8;
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "size of 8"));
  config = fresh();
  config.version = 0;
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "version 0"));
  config = fresh();
  config.blocking = none_of<setoSwitch_t>(3);
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "blocking: 3"));
  config = fresh();
  config.memory = none_of<setoMemory_t>(1000);
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "memory: 1000"));
  config = fresh();
  config.deterministic = none_of<setoSwitch_t>(-1);
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "deterministic: -1"));
  config = fresh();
  config.algorithm = "rong";
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "'rong'"));
  config = fresh();
  config.codec = "int9";
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "'int9'"));
  config = fresh();
  config.memory = setoMemoryDevice;  // without a driver, or without a context
  EXPECT_NE(init(config), setoSuccess);
  EXPECT_NE(std::string(setoGetLastError(nullptr)).find("memory: device memory cannot be used: "), std::string::npos);
  config = fresh();
  config.topologyFile = "/nowhere.xml";
  EXPECT_TRUE(failed(init(config), setoInvalidArgument, "SETO_TOPOLOGY_FILE: cannot read /nowhere.xml: No such file"));
  EXPECT_EQ(comm, nullptr);
}

struct LongerConfig {
  setoConfig_t known;
  std::size_t unknown;
};

SETO_TEST_ALONE(ApiMisuse, a_longer_config_is_taken_only_with_a_tail_of_zeros) {
  setoComm_t comm = nullptr;
  const setoUniqueId id{};
  LongerConfig longer{fresh(), 0};
  longer.known.size = sizeof longer;
  longer.known.version += 1;
  ASSERT_TRUE(succeeded(setoCommInitRankConfig(&comm, 1, id, 0, &longer.known)));
  EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  longer.unknown = 1;
  EXPECT_TRUE(failed(setoCommInitRankConfig(&comm, 1, id, 0, &longer.known), setoInvalidArgument, "is set"));
}

SETO_TEST_ALONE(ApiMisuse, a_call_that_all_reject_leaves_the_communicator_usable) {
  ThreadRanks ranks(2);
  ranks.each([](setoComm_t comm, int) {
    float value = 1;
    float out = 0;
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    config.algorithm = 999;
    EXPECT_TRUE(failed(setoAllReduce(&value, &out, 1, none_of<setoDataType_t>(300), setoSum, comm, nullptr), setoInvalidArgument,
                       "datatype: 300"));
    EXPECT_TRUE(failed(setoAllReduce(&value, &out, 1, setoFloat32, none_of<setoRedOp_t>(77), comm, nullptr), setoInvalidArgument,
                       "op: 77"));
    EXPECT_TRUE(failed(setoAllReduce(nullptr, &out, 1, setoFloat32, setoSum, comm, nullptr), setoInvalidArgument, "sendbuff"));
    EXPECT_TRUE(failed(setoBroadcast(&value, &out, 1, setoFloat32, 2, comm, nullptr), setoInvalidArgument, "root: 2"));
    EXPECT_TRUE(
        failed(setoAllReduce(&value, &out, ~std::size_t{0}, setoFloat32, setoSum, comm, nullptr), setoInvalidArgument, "count"));
    EXPECT_TRUE(failed(setoAllReduceConfig(&value, &out, 1, setoFloat32, setoSum, comm, nullptr, &config), setoInvalidArgument,
                       "algorithm: 999"));
    EXPECT_TRUE(failed(setoReduceScatterv(&value, &out, nullptr, setoFloat32, setoSum, comm, nullptr), setoInvalidArgument,
                       "recvcounts"));
    EXPECT_TRUE(succeeded(setoAllReduce(&value, &out, 1, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(out, 2);
  });
}

SETO_TEST_ALONE(ApiMisuse, a_call_that_one_rank_rejects_ends_everywhere_by_name) {
  ThreadRanks ranks(2);
  ranks.each([](setoComm_t comm, int rank) {
    float value = 1;
    float out = 0;
    const auto type = rank == 0 ? none_of<setoDataType_t>(300) : setoFloat32;
    const setoResult_t result = setoAllReduce(&value, &out, 1, type, setoSum, comm, nullptr);
    if (rank == 0) {
      EXPECT_TRUE(failed(result, setoInvalidArgument, "datatype: 300"));
    } else {
      EXPECT_TRUE(failed(result, setoRemoteError, "rank 0 rejected"));
    }
    EXPECT_TRUE(succeeded(setoAllReduce(&value, &out, 1, setoFloat32, setoSum, comm, nullptr)));
    EXPECT_EQ(out, 2);
  });
}

SETO_TEST_ALONE(ApiMisuse, custom_operations_belong_to_a_type) {
  ThreadRanks ranks(1);
  float scalar = 2;
  double value = 1;
  setoRedOp_t op{};
  ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat32, setoScalarHostImmediate, ranks[0])));
  EXPECT_TRUE(
      failed(setoAllReduce(&value, &value, 1, setoFloat64, op, ranks[0], nullptr), setoInvalidArgument, "was made for float"));
  EXPECT_TRUE(
      failed(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat32, setoScalarDevice, ranks[0]), setoInvalidUsage, "device"));
  EXPECT_TRUE(failed(setoRedOpCreatePreMulSum(&op, &scalar, none_of<setoDataType_t>(500), setoScalarHostImmediate, ranks[0]),
                     setoInvalidArgument, "datatype: 500"));
  EXPECT_TRUE(failed(setoRedOpDestroy(setoSum, ranks[0]), setoInvalidArgument, "op: 0"));
}

SETO_TEST_ALONE(ApiMisuse, what_is_missing_says_so) {
  ThreadRanks ranks(1);
  setoComm_t other = nullptr;
  setoUniqueId ids[1] = {};
  EXPECT_TRUE(failed(setoCommShrink(ranks[0], nullptr, 0, &other, nullptr, 0), setoInvalidUsage, "not in this version"));
  EXPECT_TRUE(failed(setoCommGrow(nullptr, 2, ids, 1, &other, nullptr), setoInvalidUsage, "not in this version"));
  EXPECT_TRUE(failed(setoCommRevoke(ranks[0], 0), setoInvalidUsage, "not in this version"));
  EXPECT_TRUE(failed(setoCommGetUniqueId(ranks[0], ids), setoInvalidUsage, "not in this version"));
}

}  // namespace
}  // namespace seto::testing
