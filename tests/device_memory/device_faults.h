#pragma once

#include <sys/mman.h>

#include <atomic>
#include <csignal>

#include "tests/device_memory/device_ranks.h"
#include "tests/support/child_process.h"

namespace seto::testing {

// A graph that repeats what `call` issues on the stream of the rank.
class RepeatedCalls final {
 public:
  RepeatedCalls(const DeviceRank& mine, const std::function<void()>& call) : mine_(mine) {
    EXPECT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::relaxed)));
    call();
    EXPECT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph_)));
    EXPECT_TRUE(ok(mine.driver.graph_instantiate(&executable_, graph_, 0)));
  }
  ~RepeatedCalls() {
    EXPECT_TRUE(ok(mine_.driver.graph_exec_destroy(executable_)));
    EXPECT_TRUE(ok(mine_.driver.graph_destroy(graph_)));
  }
  RepeatedCalls(const RepeatedCalls&) = delete;
  RepeatedCalls& operator=(const RepeatedCalls&) = delete;
  void launch() const { EXPECT_TRUE(ok(mine_.driver.graph_launch(executable_, mine_.cuda_stream))); }

 private:
  const DeviceRank& mine_;
  cuda::Graph graph_ = nullptr;
  cuda::GraphExec executable_ = nullptr;
};

// Ranks that are late or lost.
class DeviceFaults : public DeviceMemory {
 protected:
  static constexpr std::size_t kCount = 1000;

  static setoResult_t sum(DeviceRank& mine, float* memory, std::size_t count = kCount) {
    return setoAllReduce(memory, memory, count, setoFloat32, setoSum, mine.comm, mine.stream());
  }
  // A sum with a deadline of its own, which must fail. The calls before it have the time of the communicator.
  static setoResult_t sum_in_vain(DeviceRank& mine, float* memory) {
    setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
    call.deadlineMs = 300;
    return setoAllReduceConfig(memory, memory, kCount, setoFloat32, setoSum, mine.comm, mine.stream(), &call);
  }
  static setoResult_t send(DeviceRank& mine, const float* memory, std::size_t count = kCount, int peer = 1) {
    return setoSend(memory, count, setoFloat32, peer, mine.comm, mine.stream());
  }
  static setoResult_t receive(DeviceRank& mine, float* memory, std::size_t count = kCount, int peer = 0) {
    return setoRecv(memory, count, setoFloat32, peer, mine.comm, mine.stream());
  }
  static void abort(DeviceRank& mine) {
    (void)setoCommAbort(mine.comm);
    mine.comm = nullptr;
  }
  static void expect_failed(DeviceRank& mine, const std::string& part) {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    setoResult_t state = setoSuccess;
    while (state == setoSuccess && !until.passed()) EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
    EXPECT_NE(state, setoSuccess) << "rank " << mine.rank;
    EXPECT_NE(std::string(setoGetLastError(mine.comm)).find(part), std::string::npos)
        << "rank " << mine.rank << ": " << setoGetLastError(mine.comm);
  }
  // The stream and the context work after the communicator has failed.
  static void expect_usable(DeviceRank& mine, float* memory) {
    mine.write(memory, std::vector<float>(kCount, 7));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 7));
  }
  // Rank 0, whose kernel waits, is aborted by another thread. The other ranks hear of it.
  static void abort_rank_0(DeviceRank& mine, float* memory) {
    if (mine.rank == 0) {
      std::thread([&] { EXPECT_TRUE(succeeded(setoCommAbort(mine.comm))); }).join();
      mine.synchronize();
      expect_usable(mine, memory);
    } else {
      expect_failed(mine, "setoCommAbort was called on rank 0");
      (void)setoCommDestroy(mine.comm);
    }
    mine.comm = nullptr;
  }
  static void refuse_init(DeviceRank& mine, int ranks, setoUniqueId id, const std::string& part,
                          setoConfig_t config = device_config()) {
    const setoResult_t result = setoCommInitRankConfig(&mine.comm, ranks, id, mine.rank, &config);
    EXPECT_NE(result, setoSuccess);
    EXPECT_NE(std::string(setoGetLastError(nullptr)).find(part), std::string::npos) << setoGetLastError(nullptr);
    EXPECT_EQ(mine.comm, nullptr);
  }
};

// Memory of the test and its processes.
struct Shared {
  setoUniqueId id;
  std::atomic<int> has_id;
  std::atomic<int> waiting;
  std::atomic<std::uint64_t> written_lent, written_staged;
};

// Ranks as processes.
class DeviceProcesses : public DeviceFaults {
 protected:
  void SetUp() override {
    DeviceFaults::SetUp();
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared{};
  }

  // One rank in this process, which has just been forked.
  bool run_rank(int rank, int ranks, int gpus, const Body& body, setoConfig_t config = device_config(),
                const Variables& variables = {}) {
    start_gpus(gpus, variables);
    if (rank == 0) {
      EXPECT_TRUE(succeeded(setoGetUniqueId(&shared_->id)));
      shared_->has_id.store(1);
    }
    while (shared_->has_id.load() == 0) std::this_thread::yield();
    std::thread([&] {
      DeviceRank mine(driver(), rank, rank % gpus);
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, ranks, shared_->id, rank, &config)));
      body(mine);
      if (mine.comm != nullptr) {
        EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      }
    }).join();
    TearDown();
    return !HasFailure();
  }

  // Both count themselves in shared_->waiting when they can do nothing but wait.
  void kill_while_both_wait(ChildProcess& victim, ChildProcess& survivor) {
    const Deadline until = Deadline::after_ms(kLoadingMs);  // it begins before they load their kernels
    while (shared_->waiting.load() < 2 && !until.passed()) std::this_thread::yield();
    EXPECT_EQ(shared_->waiting.load(), 2);
    victim.kill_now();
    EXPECT_TRUE(survivor.wait());
  }

  Shared* shared_ = nullptr;
};

}  // namespace seto::testing
