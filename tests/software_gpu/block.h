#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/software_gpu/memory_view.h"
#include "tests/software_gpu/thread.h"
#include "tests/software_gpu/warp.h"

namespace seto::software_gpu {

class Machine;
struct Launch;

// One block that occupies a slot of a multiprocessor.
class Block final {
 public:
  struct Place {
    std::uint32_t gpu = 0;
    std::uint32_t multiprocessor = 0;
    std::array<std::uint32_t, 3> index{};  // in the grid
    std::uint32_t number = 0;              // unique in the machine
  };
  Block(Machine& owner, Launch& of_launch, const Place& at, MemoryView& gpu_memory);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  [[nodiscard]] bool done() const { return live_threads_ == 0; }
  [[nodiscard]] bool can_run(std::uint64_t now) const;
  [[nodiscard]] const std::deque<Thread>& threads() const { return threads_; }

  enum class Reduction : std::uint8_t { none, count, all, any };
  struct Arrival {
    std::uint32_t barrier = 0;
    std::uint32_t threads = 0;  // 0: all that have not exited
    bool waits = true;          // false: bar.arrive
    Reduction reduction = Reduction::none;
    bool predicate = false;
  };
  void arrive(Thread& thread, const Arrival& arrival);
  void exited();

  Machine& machine;
  Launch& launch;
  const Place place;
  std::vector<std::byte> shared;
  MemoryView memory;
  BlockOrder order;
  std::deque<Warp> warps;

 private:
  struct Barrier {
    std::uint32_t arrived = 0;
    std::uint32_t expected = 0;  // 0: all that have not exited
    std::uint32_t votes = 0;
    Reduction reduction = Reduction::none;
    std::vector<Thread*> waiting;
    std::vector<Release> arrivals;  // also of threads that do not wait; only if races are checked
  };

  void open_if_complete(Barrier& barrier);
  void order_threads(const Barrier& barrier);
  static void check_alignment(const Barrier& barrier);

  std::deque<Thread> threads_;
  std::array<Barrier, 16> barriers_;
  std::uint32_t live_threads_ = 0;
};

}  // namespace seto::software_gpu
