// The time that the torch backend adds to a call: two ranks as threads, each with a Backend over the library, against the library
// alone.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "include/seto/seto.h"
#include "src/torch/backend.h"

namespace {

using seto::torch_backend::Backend;
using seto::torch_backend::GroupOptions;

constexpr int kRanks = 2;
constexpr int kRounds = 20;
constexpr int kCalls = 2000;
constexpr std::size_t kElements = 2;

// Microseconds for each call in the best round, because other programs only add to the time.
double best(const std::function<void()>& call) {
  double least = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    least = std::min(least, took.count() / kCalls);
  }
  return least;
}

struct Figures {
  double torch_us = 0;
  double seto_us = 0;
};

Figures measure(int rank, setoComm_t comm, const c10::intrusive_ptr<c10d::Store>& store) {
  const auto backend = c10::make_intrusive<Backend>(Backend::Group{store, rank, kRanks, {0, 1}, "overhead"},
                                                    c10::make_intrusive<GroupOptions>(std::chrono::seconds(30)));
  std::vector<at::Tensor> tensors{at::ones({static_cast<std::int64_t>(kElements)})};
  std::array<float, kElements> plain{};
  c10d::AllreduceOptions largest;
  largest.reduceOp = c10d::ReduceOp::MAX;
  largest.asyncOp = false;  // as torch sets it for a call that it waits for
  Figures figures;
  figures.torch_us = best([&] { backend->allreduce(tensors, largest)->wait(); });
  figures.seto_us =
      best([&] { (void)setoAllReduce(plain.data(), plain.data(), kElements, setoFloat32, setoMax, comm, nullptr); });
  return figures;
}

}  // namespace

int main() {
  std::array<setoComm_t, kRanks> comms{};
  if (setoCommInitAll(comms.data(), kRanks, nullptr) != setoSuccess) {
    std::fprintf(stderr, "%s\n", setoGetLastError(nullptr));
    return 1;
  }
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::array<Figures, kRanks> figures;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] { figures[rank] = measure(static_cast<int>(rank), comms[rank], store); });
  for (std::thread& thread : threads) thread.join();
  for (const setoComm_t comm : comms) (void)setoCommDestroy(comm);
  std::printf("{\"torch_us\": %.3f, \"seto_us\": %.3f}\n", figures[0].torch_us, figures[0].seto_us);
  return 0;
}
