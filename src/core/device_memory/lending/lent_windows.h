#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/fork.h"
#include "src/core/device_memory/launch_gate.h"
#include "src/core/device_memory/lending/lent_buffers.h"
#include "src/core/device_memory/lending/memory_importer.h"
#include "src/core/device_memory/memory/device_allocations.h"
#include "src/core/device_memory/rank_statement.h"
#include "src/engine/device/lent_places.h"

namespace seto {

// Memory of this rank that the GPUs of other processes have mapped, so that they read messages where they lie. An allocation is
// offered to their importers by the first call that uses it, and stays mapped until it is freed, until others need its place, or
// until the end. One thread launches; any thread may free memory. The context is current.
class LentWindows final : public DeviceAllocations::Observer {
 public:
  struct Setup {
    std::shared_ptr<GpuContext> gpu;
    Rank rank = 0;
    std::span<const RankStatement> statements;
    std::function<bool()> is_hopeless;  // the communicator has failed: nothing is waited for any more
  };
  // All ranks call it: they try whether each can read the buffers of all others. Empty: they can. Else why not. `made` keeps what
  // was made, because giving its memory back waits for kernels.
  static Result<std::string> agree(const Setup& setup, std::unique_ptr<LentWindows>& made, Bootstrap& bootstrap, Deadline until);
  // No kernel of this process runs.
  ~LentWindows() override;
  LentWindows(const LentWindows&) = delete;
  LentWindows& operator=(const LentWindows&) = delete;

  // Null: the readers see the range. Else the reason why they cannot.
  Result<const char*> obstacle_in(BufferRange range);
  // After obstacle_in() found none: by rank, where the readers see the buffers. `use` says how long the windows are needed.
  struct Use {
    std::uint64_t launch = 0;  // the number of the launch
    std::uint64_t ended = 0;   // that of the last one that has ended
    bool is_captured = false;  // a graph may launch it again at any time
  };
  Result<std::vector<LentDistance>> distances(BufferRange input, BufferRange output, const Use& use);
  // Memory that all readers can map, for copies of buffers that they cannot. Valid until the end.
  Result<kernels::Address> copy_memory(std::size_t size);

  void released(std::uint64_t number) override;

  static constexpr std::size_t kMostWindows = 64;

 private:
  // An allocation, as the driver knows it.
  struct Memory {
    std::uint64_t number = 0;  // no two of a process have the same
    cuda::DevicePointer begin = 0;
    std::size_t size = 0;
    cuda::MemoryHandle handle = 0;   // 0: it is shared by legacy IPC
    const char* obstacle = nullptr;  // null: it can be shared
  };
  struct Window {
    std::uint64_t number = 0;
    std::size_t size = 0;
    std::vector<kernels::Address> at_readers{};  // empty: some reader cannot map it
    std::uint64_t last_launch = 0;
    bool is_captured = false;
  };
  struct Reader {
    Rank rank = 0;
    int device = 0;
    PrivateFd socket;
  };

  explicit LentWindows(const Setup& setup) : setup_(setup), ranks_(setup.statements.size()) {}
  // Connects to the importers of the other processes.
  static Result<std::unique_ptr<LentWindows>> create(const Setup& setup, Deadline until);
  Status connect(Deadline until);
  // From now on work waits on the GPU of this rank, as a kernel that waits for a peer does, until end_trial().
  Status begin_trial();
  // When all ranks have begun: whether the other processes map memory of this rank, although work waits on their GPUs.
  // A driver that maps only when its GPU is idle would wait for a kernel that waits for the rank that offers.
  Status try_out(Deadline until);
  // When all ranks have tried, or one has failed.
  void end_trial();
  // All ranks lend, so memory that is freed from now on is closed.
  void begin();
  Status try_memory(Memory memory, Deadline until);
  Result<Memory> memory_at(cuda::DevicePointer address) const;
  // The window of this memory: made if there is none.
  Result<const Window*> window_of(const Memory& memory);
  Result<std::vector<kernels::Address>> offer(const Memory& memory, Deadline until);
  Result<ImportAnswer> answer_of(const Reader& reader, Deadline until) const;
  Status note_use(BufferRange range, const Use& use, std::vector<kernels::Address>& distances);
  void forget_overlapping(const Memory& memory);
  void make_room(std::uint64_t ended);
  void close_at_readers(std::uint64_t number);

  Setup setup_;
  const std::size_t ranks_;
  std::vector<Reader> readers_;
  std::mutex mutex_;  // of the windows; nothing is waited for meanwhile
  std::map<cuda::DevicePointer, Window> windows_;
  std::vector<cuda::DevicePointer> copies_;
  std::size_t copy_size_ = 0;  // of the last one

  // The trial's.
  std::unique_ptr<LaunchGate::Unwatched> unwatched_;
  cuda::Stream waiting_ = nullptr;
  std::uint32_t* word_ = nullptr;  // pinned: not 0 ends the work that waits; stays until the end, as freeing waits for kernels
};

}  // namespace seto
