#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "src/device/cuda/driver_types.h"
#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/gpu_claim.h"
#include "tests/software_gpu/program.h"

namespace seto::software_gpu::driver {

// The end of an operation. All later work that depends on it holds it.
struct Completion {
  bool started = false;
  bool done = false;
};
using Done = std::shared_ptr<Completion>;

// One execution of a task: `start` runs when all that it depends on has ended; then `ended` is asked until it says yes.
struct Work {
  std::function<void()> start{};
  std::function<bool()> ended{};  // empty: the work ends as it starts
};

// Work of a stream, which a graph executes again and again.
struct Task {
  std::function<Work()> make{};
  bool is_kernel = false;
};

struct Graph {
  struct Node {
    Task task;
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
};

struct Stream;
struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  cuda::CaptureMode mode = cuda::CaptureMode::global;
  std::thread::id thread{};
  std::uint64_t number = 0;
  Stream* origin = nullptr;
  bool invalid = false;
  std::set<Stream*> members{};
};

struct Context;
struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  std::uint32_t queue = 0;
  Done last{};  // null: nothing was issued
  std::shared_ptr<Capture> capture{};
  std::vector<std::size_t> tail{};  // nodes of the graph that the next one depends on
};

struct Event {
  Context* context = nullptr;
  Done recorded{};  // null: never recorded
  std::weak_ptr<Capture> capture{};
  std::vector<std::size_t> nodes{};
};

// A primary context: no others exist.
struct Context {
  std::uint32_t gpu = 0;
  std::uint32_t references = 0;
  std::unique_ptr<GpuClaim> claim{};  // where the compute mode is exclusive
  std::uint64_t peers = 0;            // a bit for each GPU whose memory was made accessible
  std::optional<DriverError> failed{};
  Stream legacy{};
  std::map<std::uint32_t, Done> queues{};  // the last operation in each hardware queue
  std::vector<std::unique_ptr<Stream>> per_thread{};
};

struct Module {
  Context* context = nullptr;
  const Program* program = nullptr;
};

struct Kernel {
  Module* module = nullptr;
  const Function* function = nullptr;
  int most_dynamic_shared = 48 << 10;
};

struct GraphExec {
  std::shared_ptr<const Graph> graph{};
};

}  // namespace seto::software_gpu::driver
