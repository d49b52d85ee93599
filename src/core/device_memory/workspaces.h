#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/core/device_memory/gpu_context.h"
#include "src/core/device_memory/memory/device_arena.h"
#include "src/core/device_memory/memory/memory_exchange.h"
#include "src/core/device_memory/memory/shared_memory.h"
#include "src/core/device_memory/rank_statement.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/kernels/device_program.h"

namespace seto {

// A communicator takes so much memory of its GPU before its first call: one allocation, with the workspace and then the first
// piece of its arena. Drivers give shared memory in pieces of 2 MiB.
inline constexpr std::size_t kMemoryOfInit = std::size_t{4} << 20;
inline constexpr std::size_t kWorkspaceSize = kMemoryOfInit - DeviceArena::kPiece;

// This rank's workspace, and those of the other ranks as this rank's GPU sees them. Processes share them by file descriptor where
// the drivers of all ranks can (decision 56): then memory stays as long as anyone maps it. Other workspaces may be freed only
// when no peer can write to them any more; therefore a rank marks that it is gone in the workspaces of all others.
class Workspaces final {
 public:
  // Its context is current.
  static Result<std::unique_ptr<Workspaces>> create(std::shared_ptr<GpuContext> gpu);
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // States this rank's place and process, and how it can share memory. The rest of the statement is the caller's.
  void describe(RankStatement& statement);
  // All ranks call it with the statements of all: they agree on how processes share workspaces. `nearby`: by rank, whether it is
  // on this host.
  Status agree_on_sharing(Rank rank, const std::vector<RankStatement>& statements, const std::vector<bool>& nearby,
                          Bootstrap& bootstrap, Deadline until);
  // Gives this rank's workspace an address and fills it with zeros. Returns its statement with all that the other ranks need to
  // reach it. A driver that lets no other process map it is no failure.
  Result<RankStatement> allocate(RankStatement statement);
  // Maps the workspaces of the other ranks, as far as GPUs reach each other and the system lets processes share their memory.
  // Returns a byte for each rank: kMapped or kNotMapped.
  Result<std::string> connect(Rank rank, std::span<const RankStatement> statements, const std::vector<bool>& nearby);
  static constexpr char kMapped = '+', kNotMapped = '-';
  // By what all ranks have found, the pairs that do not use each other's workspaces, because one of them does not map the
  // other's. Logs once why the driver or the system has refused it.
  RelayedPairs relayed_pairs(const std::vector<std::string>& findings);
  // That rank does not map this one's workspace, or this one does not map that one's: neither writes to the other.
  void forget(Rank rank) { dead_[static_cast<std::size_t>(rank)] = true; }

  // All ranks have connected: from now on they write to each other's workspaces.
  void join() { joined_ = true; }

  // Bytes of a workspace that channels may use. The area of sends and receives begins there.
  [[nodiscard]] std::size_t capacity() const { return channel_capacity(addresses_.size()); }
  static std::size_t channel_capacity(std::size_t ranks);
  // By rank, as this rank's GPU sees them.
  [[nodiscard]] std::span<const kernels::Address> addresses() const { return addresses_; }
  // DeviceArena::kPiece bytes behind this rank's workspace.
  [[nodiscard]] cuda::DevicePointer first_piece() const { return own_ + kWorkspaceSize; }
  [[nodiscard]] const std::shared_ptr<GpuContext>& gpu() const { return gpu_; }

  // This rank writes to no other workspace any more, and unmaps them. Its kernels have ended.
  void leave();
  // That rank's process has died, and with it its kernels. A rank of this process has not, and says itself when it is gone.
  void mark_dead(Rank rank) {
    if (!in_process_[static_cast<std::size_t>(rank)]) forget(rank);
  }
  // The ranks of other processes had time enough to say that they are gone, and may be dead.
  void give_up_other_processes();
  // All other ranks are gone. Errors of the driver count as that: a context that failed has no memory.
  [[nodiscard]] bool all_left();

 private:
  explicit Workspaces(std::shared_ptr<GpuContext> gpu) : gpu_(std::move(gpu)) {}
  // Makes this rank's memory, hands it to the ranks of other processes, and takes theirs. Nothing has an address yet.
  Status hand_over(Rank rank, std::span<const RankStatement> statements, std::span<const MemoryExchange::Peer> peers,
                   Deadline until);
  Status take_memory();
  // False: this rank's GPU does not reach that one's.
  Result<bool> gpu_reaches(Rank rank, Rank peer, std::span<const RankStatement> statements) const;
  // False: the GPUs do not reach each other, or their processes may not share memory.
  Result<bool> reach(Rank peer, std::span<const RankStatement> statements);
  Result<bool> open_handle(Rank peer, std::span<const RankStatement> statements);
  Result<bool> map_shared(Rank peer, std::span<const RankStatement> statements);
  // Keeps the first reason. Always false.
  bool refuse(Rank peer, const Status& reason);

  const std::shared_ptr<GpuContext> gpu_;
  cuda::Stream stream_ = nullptr;             // internal: no work of the user is ordered with it
  std::unique_ptr<MemoryExchange> exchange_;  // until the ranks have agreed; null: `no_files_` says why
  Status no_files_;
  bool by_file_ = false;                 // processes share workspaces by file descriptor
  SharedMemory own_shared_;              // then: this rank's,
  std::map<Rank, SharedMemory> shared_;  // and those of other processes
  cuda::DevicePointer own_ = 0;
  std::uint64_t* words_ = nullptr;  // pinned: a flag of each rank is copied here
  Rank rank_ = 0;
  std::vector<kernels::Address> addresses_;
  std::vector<bool> dead_;                   // or out of reach
  std::vector<bool> in_process_;             // the ranks of this process
  std::vector<cuda::DevicePointer> mapped_;  // by legacy IPC
  std::string refusal_;                      // empty: no process of this host refuses to share memory
  bool joined_ = false;
  bool left_ = false;
};

}  // namespace seto
