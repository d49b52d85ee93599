#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/fd.h"
#include "src/base/fork.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/core/device_memory/rank_statement.h"
#include "src/engine/kernels/device_program.h"

namespace seto {

// The offer of this rank for its statement.
[[nodiscard]] MulticastOffer multicast_offer(const GpuContext& gpu, const Config& config);

// Memory of the library on this rank's GPU, and the multicast address by which GPUs reach that of all ranks. Its places are those
// of kernels::MulticastProgram.
class MulticastMemory final {
 public:
  struct Setup {
    std::shared_ptr<GpuContext> gpu;
    Rank rank = 0;
    const std::vector<RankStatement>& statements;
    bool is_one_node = false;  // and all GPUs of the ranks reach each other
  };
  // Why these ranks do not try it, which all of them find alike. Empty: they try it.
  [[nodiscard]] static std::string obstacle_to(const Setup& setup);
  // All ranks call it, with the context of their GPU current: they make the memory. Empty: it is there. Else why not, on all
  // ranks. `made` keeps what was made, because giving it back waits for kernels.
  static Result<std::string> agree(const Setup& setup, std::unique_ptr<MulticastMemory>& made, Bootstrap& bootstrap,
                                   Deadline until);
  // No kernel of the ranks uses it any more. The context is current.
  ~MulticastMemory();
  MulticastMemory(const MulticastMemory&) = delete;
  MulticastMemory& operator=(const MulticastMemory&) = delete;

  [[nodiscard]] kernels::Address own() const { return own_.address; }
  [[nodiscard]] kernels::Address all() const { return all_.address; }

 private:
  struct Mapping {
    cuda::DevicePointer address = 0;  // 0: none is reserved
    bool is_mapped = false;
  };

  explicit MulticastMemory(const Setup& setup);
  // The steps. Each begins when all ranks have done the one before.
  Status create_object();              // rank 0
  Status join_object(Deadline until);  // the object is handed to all ranks, and each adds its GPU
  Status bind_memory();                // which waits for the GPUs of all ranks
  Status map_object() { return map(all_, object_); }
  Status hand_over(Deadline until) const;
  Status receive_object(Deadline until);
  Status clear() const;
  Status map(Mapping& mapping, cuda::MemoryHandle handle) const;
  void unmap(Mapping& mapping) const;

  const std::shared_ptr<GpuContext> gpu_;
  const cuda::Driver& driver_;
  const Rank rank_;
  const std::size_t ranks_;
  const std::string socket_name_;  // rank 0 listens there
  std::size_t size_ = 0;
  cuda::MemoryHandle object_ = 0, memory_ = 0;  // 0: none
  bool is_bound_ = false;
  Mapping own_, all_;
  PrivateFd listener_;  // rank 0: with the descriptor of the object, until all have it
  PrivateFd file_;
};

}  // namespace seto
