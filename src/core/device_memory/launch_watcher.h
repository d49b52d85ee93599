#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/core/device_memory/launches.h"
#include "src/core/device_memory/lending/lent_windows.h"
#include "src/core/device_memory/lending/placed_shapes.h"
#include "src/core/device_memory/multicast/multicast_calls.h"
#include "src/core/device_memory/transfer_shapes.h"
#include "src/core/device_memory/workspaces.h"
#include "src/core/device_relay/gpu_slot_memory.h"
#include "src/core/device_relay/staging.h"

namespace seto {

// Something whose kernels are watched.
class Watched {
 public:
  enum class Activity : std::uint8_t { none, graphs, running };  // graphs: kernels may run, and no event tells of them

  virtual ~Watched() = default;
  // Called by the watcher, again and again while there is activity. Does not wait for peers.
  virtual Activity look() = 0;
};

// The rest of a communicator that was ended. Its memory goes when no kernel of the library runs in this process and no graph can
// start one, because freeing waits for kernels, and when no other rank can write to it.
struct RetiredDevice {
  ~RetiredDevice();

  std::unique_ptr<DeviceShapes> shapes;
  std::unique_ptr<LentWindows> windows;  // null: no other process reads buffers of this rank
  std::unique_ptr<PlacedShapes> placed;  // with windows
  std::unique_ptr<MulticastCalls> multicast;
  std::unique_ptr<TransferShapes> transfers;
  std::unique_ptr<Launches> launches;
  std::unique_ptr<Workspaces> workspaces;
  std::unique_ptr<Staging> staging;       // null: all GPUs reach each other
  std::unique_ptr<GpuSlotMemory> slots;   // null: no device reads memory of the GPU, or none is needed yet
  Deadline patience = Deadline::never();  // with ranks of other processes, that may have died
};

// The thread of this process that watches kernels, since their calls return at once: it sees their ends, deadlines and lost
// peers. It sleeps while there is nothing to watch. Another thread frees what ended communicators leave behind, because the
// driver may wait there for kernels of the program, which may wait for a kernel that has to be watched.
class LaunchWatcher final {
 public:
  static LaunchWatcher& of_process();

  Status add(Watched& one);
  // Waits for a look that is being taken.
  void remove(Watched& one);
  // The same.
  void end_look() { const std::lock_guard lock(mutex_); }
  // There is something to watch. False: the process is ending, and nothing is watched any more.
  bool wake();
  // Waits for the thread that frees, as long as the driver does not wait for kernels of the program.
  void retire(std::unique_ptr<RetiredDevice> device);
  // The number of those that wait for the end of kernels or for other ranks.
  [[nodiscard]] std::size_t retired();

 private:
  LaunchWatcher() = default;
  Status start();
  void run();
  void run_freeing();
  // Looks at all, and lets be freed what can be. Locked. Without memory it does so again soon.
  Watched::Activity look() noexcept;
  Watched::Activity look_at_all();
  // Whether kernels of an ended communicator have to be stopped once more.
  bool stop_retired();
  void stop();
  friend struct StopLaunchWatcher;

  std::mutex mutex_;  // of the list and the threads, also during a look
  std::vector<Watched*> watched_;

  std::mutex retired_mutex_;  // nothing is waited for meanwhile
  std::condition_variable may_free_;
  std::deque<std::unique_ptr<RetiredDevice>> retired_;
  std::size_t being_freed_ = 0;   // by the thread, which has taken it from the list
  std::uint64_t calm_looks_ = 0;  // that found no kernel; the gate had the number below at the last one
  std::uint64_t calm_at_ = 0;
  std::uint64_t freed_after_ = 0;  // looks after which the thread has freed what could be freed
  std::condition_variable freed_;
  bool freeing_stops_ = false;
  std::thread freeing_thread_;

  std::mutex wake_mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace seto
