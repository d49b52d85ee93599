// Promises of seto.h that hold for every program: threads, the last error, copies of arguments, and what an ended communicator
// does.

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 2;

std::string last_error() { return setoGetLastError(nullptr); }

SETO_TEST_ALONE(ApiThreads, queries_run_beside_calls_from_any_thread) {
  ThreadRanks ranks(kRanks);
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  for (int rank = 0; rank < kRanks; ++rank)
    readers.emplace_back([&, rank] {
      while (!over) {
        setoResult_t state = setoInternalError;
        int number = -1;
        EXPECT_TRUE(succeeded(setoCommGetAsyncError(ranks[rank], &state)));
        EXPECT_EQ(state, setoSuccess);
        EXPECT_TRUE(succeeded(setoCommUserRank(ranks[rank], &number)));
        EXPECT_EQ(number, rank);
        EXPECT_NE(setoGetLastError(ranks[rank]), nullptr);
        std::array<char, 64> text{};
        EXPECT_TRUE(succeeded(setoCommDump(ranks[rank], setoFormatJson, text.data(), text.size(), nullptr)));
        EXPECT_EQ(std::string(text.data()).substr(0, 15), "{\"seto_dump\":1,");
      }
    });
  ranks.each([](setoComm_t comm, int) {
    for (int call = 0; call < 300; ++call) {
      float value = 1;
      EXPECT_TRUE(succeeded(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr)));
      EXPECT_EQ(value, kRanks);
    }
  });
  over = true;
  for (std::thread& reader : readers) reader.join();
}

SETO_TEST_ALONE(ApiThreads, the_last_error_belongs_to_its_thread) {
  EXPECT_EQ(last_error(), "no call on this thread has failed");
  EXPECT_EQ(setoGetVersion(nullptr), setoInvalidArgument);
  EXPECT_EQ(last_error(), "version: NULL");
  std::thread([] {
    EXPECT_EQ(last_error(), "no call on this thread has failed");
    EXPECT_EQ(setoMemAlloc(nullptr, 1), setoInvalidArgument);
    EXPECT_EQ(last_error(), "ptr: NULL");
  }).join();
  EXPECT_EQ(last_error(), "version: NULL");
}

SETO_TEST_ALONE(ApiThreads, success_and_progress_keep_the_last_error) {
  ThreadRanks ranks(kRanks);
  setoStream_t stream = nullptr;
  ASSERT_TRUE(succeeded(setoStreamCreate(&stream)));
  EXPECT_EQ(setoGetVersion(nullptr), setoInvalidArgument);
  float value = 1;
  float other_value = 1;
  EXPECT_TRUE(succeeded(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, ranks[0], stream)));
  EXPECT_EQ(setoStreamPoll(stream, 1), setoInProgress) << "the other rank has not called";
  EXPECT_EQ(last_error(), "version: NULL");
  EXPECT_TRUE(succeeded(setoAllReduce(&other_value, &other_value, 1, setoFloat32, setoSum, ranks[1], nullptr)));
  EXPECT_TRUE(succeeded(setoStreamWait(stream, 1, 0)));
  EXPECT_EQ(last_error(), "version: NULL");
  EXPECT_TRUE(succeeded(setoStreamDestroy(stream)));
}

SETO_TEST_ALONE(ApiThreads, a_group_belongs_to_its_thread) {
  ThreadRanks ranks(1);
  ASSERT_TRUE(succeeded(setoGroupStart()));
  float grouped = 3;
  float alone = 4;
  float result = 0;
  float other_result = 0;
  EXPECT_TRUE(succeeded(setoAllReduce(&grouped, &result, 1, setoFloat32, setoSum, ranks[0], nullptr)));
  std::thread([&] {
    EXPECT_EQ(setoGroupEnd(), setoInvalidUsage) << "this thread has started none";
    ThreadRanks own(1);
    EXPECT_TRUE(succeeded(setoAllReduce(&alone, &other_result, 1, setoFloat32, setoSum, own[0], nullptr)));
  }).join();
  EXPECT_EQ(other_result, 4);
  EXPECT_EQ(result, 0) << "the group has not ended";
  EXPECT_TRUE(succeeded(setoGroupEnd()));
  EXPECT_EQ(result, 3);
}

// Each call that a finalized communicator must refuse.
using Call = setoResult_t (*)(setoComm_t, float*);
constexpr Call kCalls[] = {
    [](setoComm_t comm, float* value) { return setoAllReduce(value, value, 1, setoFloat32, setoSum, comm, nullptr); },
    [](setoComm_t comm, float* value) { return setoBroadcast(value, value, 1, setoFloat32, 0, comm, nullptr); },
    [](setoComm_t comm, float*) { return setoBarrier(comm, nullptr); },
    [](setoComm_t comm, float* value) { return setoSend(value, 1, setoFloat32, 1, comm, nullptr); },
    [](setoComm_t comm, float* value) { return setoRecv(value, 1, setoFloat32, 1, comm, nullptr); },
    [](setoComm_t comm, float* value) {
      int source = 0;
      return setoRecvAny(value, 1, setoFloat32, &source, comm, nullptr);
    },
    [](setoComm_t comm, float* value) {
      const std::size_t none[kRanks] = {};
      return setoAllToAllv(value, none, nullptr, value, none, nullptr, setoFloat32, comm, nullptr);
    },
    [](setoComm_t comm, float*) {
      setoComm_t child = nullptr;
      return setoCommSplit(comm, 0, 0, &child, nullptr);
    },
    [](setoComm_t comm, float*) {
      setoErrorFeedback_t state = nullptr;
      return setoErrorFeedbackCreate(&state, 1, setoFloat32, comm);
    },
    [](setoComm_t comm, float*) { return setoCommFinalize(comm); },
};

SETO_TEST_ALONE(ApiFinalized, a_communicator_answers_queries_and_refuses_all_else) {
  ThreadRanks ranks(kRanks);
  ranks.each([](setoComm_t comm, int rank) {
    EXPECT_TRUE(succeeded(setoCommFinalize(comm)));
    for (const Call call : kCalls) {
      float value = 1;
      EXPECT_TRUE(
          failed(call(comm, &value), setoInvalidUsage, "comm: it was finalized; only queries and setoCommDestroy are allowed"));
    }
    int number = -1;
    EXPECT_TRUE(succeeded(setoCommUserRank(comm, &number)));
    EXPECT_EQ(number, rank);
    EXPECT_TRUE(succeeded(setoCommCount(comm, &number)));
    EXPECT_EQ(number, kRanks);
    setoResult_t state = setoInternalError;
    EXPECT_TRUE(succeeded(setoCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, setoSuccess);
  });
}

SETO_TEST_ALONE(ApiFinalized, a_group_refuses_it_too_and_runs_the_rest) {
  ThreadRanks ended(1);
  ThreadRanks living(1);
  EXPECT_TRUE(succeeded(setoCommFinalize(ended[0])));
  float value = 5;
  float result = 0;
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(failed(setoAllReduce(&value, &result, 1, setoFloat32, setoSum, ended[0], nullptr), setoInvalidUsage, "finalized"));
  EXPECT_TRUE(succeeded(setoAllReduce(&value, &result, 1, setoFloat32, setoSum, living[0], nullptr)));
  EXPECT_TRUE(failed(setoGroupEnd(), setoInvalidUsage, "finalized"));
  EXPECT_EQ(result, 5);
}

// After an abort on another rank every call fails with the first reason, and the communicator can still be destroyed.
SETO_TEST_ALONE(ApiAborted, the_other_ranks_keep_the_first_reason) {
  ThreadRanks ranks(kRanks);
  EXPECT_TRUE(succeeded(setoCommAbort(ranks[0])));
  ranks[0] = nullptr;
  for (int time = 0; time < 3; ++time) {
    float value = 1;
    EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, ranks[1], nullptr), setoRemoteError,
                       "setoCommAbort was called on rank 0"));
    setoResult_t state = setoSuccess;
    EXPECT_TRUE(succeeded(setoCommGetAsyncError(ranks[1], &state)));
    EXPECT_EQ(state, setoRemoteError);
    EXPECT_NE(std::string(setoGetLastError(ranks[1])).find("setoCommAbort was called on rank 0"), std::string::npos);
  }
  EXPECT_TRUE(succeeded(setoCommDestroy(ranks[1])));
  ranks[1] = nullptr;
}

SETO_TEST_ALONE(ApiAborted, calls_on_a_stream_end_with_the_reason) {
  ThreadRanks ranks(kRanks);
  setoStream_t stream = nullptr;
  ASSERT_TRUE(succeeded(setoStreamCreate(&stream)));
  std::array<float, 3> values{};
  for (float& value : values) EXPECT_TRUE(succeeded(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, ranks[1], stream)));
  EXPECT_TRUE(succeeded(setoCommAbort(ranks[0])));
  ranks[0] = nullptr;
  EXPECT_TRUE(failed(setoStreamWait(stream, 3, 20'000), setoRemoteError, "rank 0"));
  EXPECT_TRUE(succeeded(setoStreamDestroy(stream)));
}

// "Arrays, strings and config structs are copied before the call returns."
SETO_TEST_ALONE(ApiCopies, arrays_of_a_grouped_call_may_change_before_its_end) {
  ThreadRanks ranks(kRanks);
  std::array<std::array<float, 4>, kRanks> out{};
  std::array<float, 3> in = {1, 2, 3};
  ASSERT_TRUE(succeeded(setoGroupStart()));
  for (int rank = 0; rank < kRanks; ++rank) {
    std::size_t counts[kRanks] = {1, 3};
    std::size_t displacements[kRanks] = {3, 0};
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    EXPECT_TRUE(succeeded(setoAllGathervConfig(in.data(), counts[rank], out[static_cast<std::size_t>(rank)].data(), counts,
                                               displacements, setoFloat32, ranks[rank], nullptr, &config)));
    std::memset(counts, 0xff, sizeof counts);
    std::memset(displacements, 0xff, sizeof displacements);
    std::memset(&config, 0xff, sizeof config);
  }
  EXPECT_TRUE(succeeded(setoGroupEnd()));
  for (const auto& one : out) EXPECT_EQ(one, (std::array<float, 4>{1, 2, 3, 1}));
}

// "Operations that were already issued are not affected" by the end of their custom operation.
SETO_TEST_ALONE(ApiCopies, a_custom_operation_may_end_before_its_calls) {
  ThreadRanks ranks(1);
  float scalar = 3;
  float value = 2;
  float result = 0;
  setoRedOp_t op{};
  ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat32, setoScalarHostImmediate, ranks[0])));
  scalar = 100;  // it was read when the operation was made
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(succeeded(setoAllReduce(&value, &result, 1, setoFloat32, op, ranks[0], nullptr)));
  EXPECT_TRUE(succeeded(setoRedOpDestroy(op, ranks[0])));
  setoRedOp_t other{};
  EXPECT_TRUE(succeeded(setoRedOpCreatePreMulSum(&other, &scalar, setoFloat32, setoScalarHostImmediate, ranks[0])));
  EXPECT_TRUE(succeeded(setoGroupEnd()));
  EXPECT_EQ(result, 6);
  EXPECT_TRUE(succeeded(setoRedOpDestroy(other, ranks[0])));
}

SETO_TEST_ALONE(ApiCopies, a_custom_operation_of_another_communicator_is_refused) {
  ThreadRanks one(1);
  ThreadRanks other(1);
  float scalar = 3;
  float value = 2;
  setoRedOp_t op{};
  ASSERT_TRUE(succeeded(setoRedOpCreatePreMulSum(&op, &scalar, setoFloat32, setoScalarHostImmediate, one[0])));
  EXPECT_TRUE(failed(setoAllReduce(&value, &value, 1, setoFloat32, op, other[0], nullptr), setoInvalidArgument,
                     "op: 5 is neither built in nor a custom operation of this communicator"));
  EXPECT_TRUE(failed(setoRedOpDestroy(op, other[0]), setoInvalidArgument, "op: 5"));
  EXPECT_TRUE(succeeded(setoRedOpDestroy(op, one[0])));
  EXPECT_TRUE(failed(setoRedOpDestroy(op, one[0]), setoInvalidArgument, "op: 5")) << "destroyed twice";
}

SETO_TEST_ALONE(ApiArguments, numbers_of_ranks_are_checked_by_all_inits) {
  setoComm_t comms[1] = {};
  for (const int ranks : {0, -1}) EXPECT_EQ(setoCommInitAll(comms, ranks, nullptr), setoInvalidArgument) << last_error();
  setoUniqueId ids[1] = {};
  for (const int number : {0, -1, std::numeric_limits<int>::min()})
    EXPECT_TRUE(failed(setoCommInitRankScalable(comms, 1, 0, number, ids, nullptr), setoInvalidArgument, "nId: "));
  EXPECT_EQ(comms[0], nullptr);
}

SETO_TEST_ALONE(ApiArguments, of_streams_are_named) {
  setoStream_t stream = nullptr;
  std::uint64_t position = 0;
  ASSERT_TRUE(succeeded(setoStreamCreate(&stream)));
  EXPECT_TRUE(failed(setoStreamCreate(nullptr), setoInvalidArgument, "stream: NULL"));
  EXPECT_TRUE(failed(setoStreamDestroy(nullptr), setoInvalidArgument, "stream: NULL"));
  EXPECT_TRUE(failed(setoStreamPosition(stream, nullptr), setoInvalidArgument, "position: NULL"));
  EXPECT_TRUE(failed(setoStreamPosition(nullptr, &position), setoInvalidArgument, "stream: NULL"));
  EXPECT_TRUE(failed(setoStreamWait(stream, 1, 0), setoInvalidArgument, "position: 1 is beyond the last item, 0"));
  EXPECT_TRUE(failed(setoStreamWaitFor(stream, nullptr, 0), setoInvalidArgument, "other: NULL"));
  EXPECT_TRUE(failed(setoLaunchHostFunction(stream, nullptr, nullptr), setoInvalidArgument, "function: NULL"));
  EXPECT_TRUE(failed(setoLaunchOutcomeFunction(stream, nullptr, nullptr), setoInvalidArgument, "function: NULL"));
  EXPECT_TRUE(succeeded(setoStreamPosition(stream, &position)));
  EXPECT_EQ(position, 0U) << "a refused call queues nothing";
  EXPECT_TRUE(succeeded(setoStreamDestroy(stream)));
  EXPECT_TRUE(failed(setoStreamDestroy(stream), setoInvalidArgument, "is not a host stream; was it destroyed?"));
}

SETO_TEST_ALONE(ApiArguments, of_codecs_are_named) {
  int fp16 = 0;
  std::size_t size = 99;
  double bound = 99;
  ASSERT_TRUE(succeeded(setoCodecId("fp16", &fp16)));
  EXPECT_TRUE(failed(setoCodecSize(0, setoFloat32, 1, &size), setoInvalidArgument, "codec: 0 is not an id; call setoCodecId"));
  EXPECT_TRUE(failed(setoCodecSize(fp16, setoInt32, 1, &size), setoInvalidArgument, "codec: fp16 does not accept int32"));
  EXPECT_TRUE(failed(setoCodecSize(fp16, none_of<setoDataType_t>(12), 1, &size), setoInvalidArgument, "datatype: 12"));
  EXPECT_TRUE(failed(setoCodecSize(fp16, setoFloat32, ~std::size_t{0}, &size), setoInvalidArgument, "is too large"));
  EXPECT_TRUE(failed(setoCodecSize(fp16, setoFloat32, 1, nullptr), setoInvalidArgument, "size: NULL"));
  EXPECT_EQ(size, 99U);
  const auto refused = [&](int ranks, double largest) { return setoCodecErrorBound(fp16, setoFloat32, ranks, largest, &bound); };
  EXPECT_TRUE(failed(refused(0, 1), setoInvalidArgument, "ranks: 0 is not 1 or more"));
  EXPECT_TRUE(failed(refused(1, -1), setoInvalidArgument, "largest: -1 is not a magnitude"));
  EXPECT_TRUE(failed(refused(1, std::nan("")), setoInvalidArgument, "is not a magnitude"));
  EXPECT_TRUE(failed(refused(1, HUGE_VAL), setoInvalidArgument, "largest: inf is not a magnitude"));
  EXPECT_TRUE(failed(refused(1, 1e300), setoInvalidArgument, "is beyond every float"));
  EXPECT_EQ(bound, 99);
}

SETO_TEST_ALONE(ApiArguments, the_bound_of_a_codec_grows_with_ranks_and_magnitude) {
  for (const char* const name : {"fp16", "bf16", "fp8", "int8", "int4"}) {
    int codec = 0;
    ASSERT_TRUE(succeeded(setoCodecId(name, &codec)));
    double before = 0;
    for (int ranks = 1; ranks <= 64; ranks *= 2) {
      double last = before;
      for (double largest = 0.25; largest <= 64; largest *= 2) {
        double bound = -1;
        EXPECT_TRUE(succeeded(setoCodecErrorBound(codec, setoFloat32, ranks, largest, &bound)));
        EXPECT_GT(bound, last) << name << ", " << ranks << " ranks up to " << largest;
        last = bound;
        if (largest == 0.25) before = bound;
      }
    }
    double nothing = -1;
    EXPECT_TRUE(succeeded(setoCodecErrorBound(codec, setoFloat32, 4, 0, &nothing)));
    EXPECT_EQ(nothing, 0) << "zeros are exact";
  }
}

SETO_TEST_ALONE(ApiArguments, memory_of_any_size_is_given_or_refused_with_the_reason) {
  void* memory = &memory;
  EXPECT_TRUE(succeeded(setoMemAlloc(&memory, 0)));
  EXPECT_EQ(memory, nullptr);
  EXPECT_TRUE(failed(setoMemAlloc(&memory, (std::size_t{1} << 62) + 1), setoInvalidArgument, "exceed the address space"));
  EXPECT_TRUE(failed(setoMemAlloc(&memory, std::size_t{1} << 62), setoSystemError, "out of memory: cannot allocate"));
  EXPECT_EQ(memory, nullptr);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{4096}, (std::size_t{2} << 20) - 1, std::size_t{2} << 20, std::size_t{5} << 20}) {
    ASSERT_TRUE(succeeded(setoMemAlloc(&memory, size)));
    static_cast<char*>(memory)[size - 1] = 1;
    EXPECT_TRUE(failed(setoMemFree(static_cast<char*>(memory) + 1), setoInvalidArgument, "is not from setoMemAlloc"));
    EXPECT_TRUE(succeeded(setoMemFree(memory)));
    EXPECT_TRUE(failed(setoMemFree(memory), setoInvalidArgument, "is not from setoMemAlloc, or was freed"));
  }
}

}  // namespace
}  // namespace seto::testing
