#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/core/device_memory/gpu_context.h"
#include "src/core/device_memory/memory/device_arena.h"
#include "src/core/device_memory/rank_statement.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/kernels/device_program.h"

namespace seto {

// A communicator asks for so much memory of its GPU before its first call: the workspace, and the first piece of its arena. A
// driver may round both up.
inline constexpr std::size_t kMemoryOfInit = std::size_t{4} << 20;
inline constexpr std::size_t kWorkspaceSize = kMemoryOfInit - DeviceArena::kPiece;

// This rank's workspace, and those of the other ranks as this rank's GPU sees them. A workspace may be freed only when no peer
// can write to it any more; therefore a rank marks that it is gone in the workspaces of all others.
class Workspaces final {
 public:
  // Allocates this rank's workspace, full of zeros. Its context is current.
  static Result<std::unique_ptr<Workspaces>> create(std::shared_ptr<GpuContext> gpu);
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // States all that the other ranks need to reach it; the rest of the statement is the caller's. A driver that lets no other
  // process map it is no failure.
  void describe(RankStatement& statement) const;
  // Maps the workspaces of the other ranks, as far as GPUs reach each other and the system lets processes share their memory.
  // `nearby`: by rank, whether it is on this host.
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
  Status allocate();
  // False: the GPUs do not reach each other, or their processes may not share memory.
  Result<bool> reach(Rank peer, std::span<const RankStatement> statements);
  Result<bool> open_handle(Rank peer, std::span<const RankStatement> statements);
  // Keeps the first reason. Always false.
  bool refuse(Rank peer, const Status& reason);

  const std::shared_ptr<GpuContext> gpu_;
  cuda::Stream stream_ = nullptr;  // internal: no work of the user is ordered with it
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
