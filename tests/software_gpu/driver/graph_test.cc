// Streams that are captured into graphs, and what a capture forbids.
#include <gmock/gmock.h>

#include <thread>

#include "tests/software_gpu/driver/driver_test.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::CaptureMode;
using cuda::CaptureStatus;
using cuda::DriverCode;
using ::testing::Each;

class Graphs : public StandInTest {
 protected:
  [[nodiscard]] CaptureStatus status_of(cuda::Stream stream) const {
    CaptureStatus status{};
    EXPECT_TRUE(ok(driver().stream_is_capturing(stream, &status)));
    return status;
  }
  // The end of a capture, and a graph that can be launched.
  [[nodiscard]] cuda::GraphExec end_of_capture(cuda::Stream stream) const {
    cuda::Graph graph = nullptr;
    cuda::GraphExec exec = nullptr;
    EXPECT_TRUE(ok(driver().stream_end_capture(stream, &graph)));
    EXPECT_TRUE(ok(driver().graph_instantiate(&exec, graph, 0)));
    EXPECT_TRUE(ok(driver().graph_destroy(graph)));
    return exec;
  }
  // Begins a capture, makes a call, and expects that the call fails and the capture with it.
  template <class Call>
  void expect_forbidden(const char* what, CaptureMode mode, DriverCode code, const Call& call) {
    SCOPED_TRACE(what);
    const cuda::Stream stream = make_stream(0);
    ASSERT_TRUE(ok(driver().stream_begin_capture(stream, mode)));
    EXPECT_EQ(call(stream), code);
    EXPECT_EQ(driver().memset_d32_async.code(words_, 0, 1, stream), DriverCode::stream_capture_invalidated);
    cuda::Graph graph = nullptr;
    EXPECT_EQ(driver().stream_end_capture.code(stream, &graph), DriverCode::stream_capture_invalidated);
    EXPECT_EQ(graph, nullptr);
    ASSERT_TRUE(ok(driver().stream_destroy(stream)));
  }

  cuda::DevicePointer words_ = 0;
};

TEST_F(Graphs, ACapturedStreamIsReplayedTwice) {
  start();
  const cuda::Stream stream = make_stream();
  const cuda::DevicePointer words = allocate(256), copy = allocate(256);
  const cuda::Kernel add = kernel("add");
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 0, 64, stream)));
  ASSERT_TRUE(ok(driver().stream_begin_capture(stream, CaptureMode::global)));
  EXPECT_EQ(status_of(stream), CaptureStatus::active);
  ASSERT_TRUE(ok(launch(add, 2, 32, stream, words, 64U, 3U)));
  ASSERT_TRUE(ok(driver().memcpy_async(copy, words, 256, stream)));
  ASSERT_TRUE(ok(launch(add, 2, 32, stream, copy, 64U, 100U)));
  const cuda::GraphExec graph = end_of_capture(stream);
  EXPECT_EQ(status_of(stream), CaptureStatus::none);
  EXPECT_THAT(words_at(words, 64, stream), Each(0U)) << "a capture executes nothing";
  ASSERT_TRUE(ok(driver().graph_launch(graph, stream)));
  EXPECT_THAT(words_at(copy, 64, stream), Each(103U));
  ASSERT_TRUE(ok(driver().graph_launch(graph, stream)));
  EXPECT_THAT(words_at(copy, 64, stream), Each(106U));
  EXPECT_THAT(words_at(words, 64, stream), Each(6U));
  EXPECT_TRUE(ok(driver().graph_exec_destroy(graph)));
}

TEST_F(Graphs, StreamsThatAreForkedAndJoinedAreParts) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", "11"}});
  const cuda::Stream first = make_stream(), second = make_stream();
  const cuda::DevicePointer one = allocate(128), two = allocate(128);
  const cuda::Kernel add = kernel("add"), twice = kernel("twice");
  const cuda::Event fork = make_event(), join = make_event();
  ASSERT_TRUE(ok(driver().stream_begin_capture(first, CaptureMode::global)));
  ASSERT_TRUE(ok(driver().memset_d32_async(one, 1, 32, first)));
  ASSERT_TRUE(ok(driver().event_record(fork, first)));
  ASSERT_TRUE(ok(driver().stream_wait_event(second, fork, 0)));
  EXPECT_EQ(status_of(second), CaptureStatus::active);
  ASSERT_TRUE(ok(launch(twice, 1, 32, second, two, one, 32U)));
  ASSERT_TRUE(ok(driver().event_record(join, second)));
  EXPECT_EQ(driver().stream_get_capture_info.code(second, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            DriverCode::success);
  ASSERT_TRUE(ok(driver().stream_wait_event(first, join, 0)));
  ASSERT_TRUE(ok(launch(add, 1, 32, first, two, 32U, 5U)));
  const cuda::GraphExec graph = end_of_capture(first);
  EXPECT_EQ(status_of(second), CaptureStatus::none);
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_TRUE(ok(driver().graph_launch(graph, second)));
    EXPECT_THAT(words_at(two, 32, second), Each(7U));
  }
}

TEST_F(Graphs, AStreamThatIsNotJoinedIsAnError) {
  start();
  const cuda::Stream first = make_stream(), second = make_stream();
  const cuda::DevicePointer words = allocate(4);
  const cuda::Event fork = make_event();
  ASSERT_TRUE(ok(driver().stream_begin_capture(first, CaptureMode::thread_local_only)));
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 1, 1, first)));
  ASSERT_TRUE(ok(driver().event_record(fork, first)));
  ASSERT_TRUE(ok(driver().stream_wait_event(second, fork, 0)));
  ASSERT_TRUE(ok(driver().memset_d32_async(words, 2, 1, second)));
  cuda::Graph graph = nullptr;
  const Status status = driver().stream_end_capture(first, &graph);
  EXPECT_THAT(std::string(status.text()), ::testing::HasSubstr("CUDA_ERROR_STREAM_CAPTURE_UNJOINED"));
  EXPECT_EQ(status.code(), seto::Code::invalid_usage);
  EXPECT_EQ(status_of(second), CaptureStatus::none);
}

TEST_F(Graphs, CallsThatMayWaitInvalidateACapture) {
  start();
  words_ = allocate(64);
  const cuda::Stream other = make_stream();
  const cuda::Event event = make_event();
  ASSERT_TRUE(ok(driver().event_record(event, other)));
  ASSERT_TRUE(ok(driver().stream_synchronize(other)));
  cuda::DevicePointer more = 0;
  cuda::Module module = nullptr;
  const DriverCode forbidden = DriverCode::stream_capture_unsupported;
  for (const CaptureMode mode : {CaptureMode::global, CaptureMode::thread_local_only}) {
    expect_forbidden("malloc", mode, forbidden, [&](cuda::Stream) { return driver().mem_alloc.code(&more, 64); });
    expect_forbidden("load", mode, forbidden,
                     [&](cuda::Stream) { return driver().module_load_data.code(&module, kTestKernels); });
    expect_forbidden("event query", mode, forbidden, [&](cuda::Stream) { return driver().event_query.code(event); });
    expect_forbidden("synchronize", mode, forbidden,
                     [&](cuda::Stream stream) { return driver().stream_synchronize.code(stream); });
    expect_forbidden("legacy stream", mode, DriverCode::stream_capture_implicit,
                     [&](cuda::Stream) { return driver().memset_d32_async.code(words_, 0, 1, nullptr); });
    expect_forbidden("event from outside", mode, DriverCode::stream_capture_isolation,
                     [&](cuda::Stream stream) { return driver().stream_wait_event.code(stream, event, 0); });
  }
  expect_forbidden("event of the capture", CaptureMode::relaxed, DriverCode::captured_event, [&](cuda::Stream stream) {
    EXPECT_TRUE(ok(driver().event_record(event, stream)));
    return driver().event_query.code(event);
  });
}

TEST_F(Graphs, AnotherThreadInvalidatesAGlobalCaptureUnlessItIsRelaxed) {
  start();
  words_ = allocate(64);
  const auto from_another_thread = [&](CaptureMode mode) {
    DriverCode code{};
    std::thread([&] {
      EXPECT_TRUE(ok(driver().ctx_set_current(context())));
      EXPECT_TRUE(ok(driver().thread_exchange_capture_mode(&mode)));
      EXPECT_EQ(mode, CaptureMode::global) << "that of a new thread";
      cuda::DevicePointer more = 0;
      code = driver().mem_alloc.code(&more, 64);
    }).join();
    return code;
  };
  expect_forbidden("another thread", CaptureMode::global, DriverCode::stream_capture_unsupported,
                   [&](cuda::Stream) { return from_another_thread(CaptureMode::global); });
  for (const auto& [capture, thread] : {std::pair{CaptureMode::global, CaptureMode::relaxed},
                                        {CaptureMode::global, CaptureMode::thread_local_only},
                                        {CaptureMode::thread_local_only, CaptureMode::global},
                                        {CaptureMode::relaxed, CaptureMode::global}}) {
    const cuda::Stream stream = make_stream();
    ASSERT_TRUE(ok(driver().stream_begin_capture(stream, capture)));
    EXPECT_EQ(from_another_thread(thread), DriverCode::success);
    EXPECT_EQ(status_of(stream), CaptureStatus::active);
    (void)end_of_capture(stream);
  }
}

}  // namespace
}  // namespace seto::software_gpu::driver
