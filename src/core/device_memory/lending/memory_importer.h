#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/wakeup.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/device/cuda/driver_memory.h"

namespace seto {

// A message to the importer of another process; a descriptor comes with `map_file`.
struct ImportRequest {
  enum class Kind : std::uint32_t { map_file = 1, map_handle = 2, close = 3 };

  std::uint64_t layout = sizeof(ImportRequest) << 8 | 1;
  Kind kind = Kind::close;
  std::int32_t device = 0;   // of the importing process
  std::uint64_t number = 0;  // of the memory, in the process that has it
  std::uint64_t size = 0;    // bytes, of all
  cuda::IpcMemoryHandle handle{};
};
// The answer to a request to map.
struct ImportAnswer {
  std::uint64_t number = 0;
  std::uint64_t address = 0;  // 0: the driver refused
  std::uint32_t code = 0;     // of its failure
  char text[244] = {};        // ends in a zero
};

// Maps memory of other processes for the GPUs of this one, at their request, on a thread of its own: a call of another process
// waits for the answer, while the threads of this process may do anything. What is mapped for a connection stays until that
// process closes it, and then until no kernel of the library runs here, because unmapping waits for kernels. A second thread
// unmaps: the first one never waits for a kernel, because the kernel may wait for the process that waits for the answer.
class MemoryImporter final {
 public:
  static MemoryImporter& of_process();
  // The local socket at which the importer of a process listens.
  static std::string socket_of(std::uint64_t process);

  // Begins to listen, unless it does. `on_closed`: called when there is something to unmap.
  Status start(std::function<void()> on_closed);
  // No kernel of the library ran in this process when so many launches had come to the gate, and no graph can start one.
  void unmap_closed(std::uint64_t came);
  // The number of mappings, also of those that were closed and are still there.
  [[nodiscard]] std::size_t mapped() const { return mapped_.load(); }

 private:
  struct Mapping {
    std::shared_ptr<GpuContext> gpu{};
    cuda::DevicePointer address = 0;
    std::uint64_t size = 0;
    cuda::MemoryHandle handle = 0;  // 0: opened by legacy IPC
  };
  struct Client {
    PrivateFd socket;
    std::map<std::pair<std::uint64_t, std::int32_t>, Mapping> mappings;  // by number and device
  };

  MemoryImporter() = default;
  void run();
  void run_unmapping();
  void accept_clients();
  // False: the client has ended.
  bool serve(Client& client);
  ImportAnswer map(Client& client, const ImportRequest& request, const Fd& file);
  static Status map_file(Mapping& mapping, const Fd& file);
  static Status open_handle(Mapping& mapping, const ImportRequest& request);
  void close(Mapping mapping);
  static void unmap(const Mapping& mapping);
  void stop();
  friend struct StopMemoryImporter;

  std::mutex mutex_;  // of the start
  PrivateFd listener_;
  std::shared_ptr<const Wakeup> wakeup_;
  std::function<void()> on_closed_;
  std::thread thread_, unmapping_thread_;
  std::atomic<bool> stops_{false};
  std::atomic<std::size_t> mapped_{0};
  std::vector<Client> clients_;  // the first thread alone uses it

  std::mutex closed_mutex_;  // of what follows; nothing is waited for meanwhile
  std::condition_variable may_unmap_;
  std::deque<Mapping> closed_;
  std::size_t calm_ = 0;       // the first so many of them were closed when no kernel ran
  std::uint64_t calm_at_ = 0;  // when so many launches had come to the gate
};

// Sends a request; a descriptor goes with it if it is not negative.
Status send_import_request(int socket, const ImportRequest& request, int file, Deadline until);

}  // namespace seto
