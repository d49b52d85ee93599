#include "src/core/device_memory/workspaces.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/device/device_transfers.h"
#include "src/engine/kernels/device_launch.h"

namespace seto {
namespace {

using cuda::DriverCode;
using kernels::kFlagStride;

constexpr std::uint32_t kGone = 1;

// The factor of FNV-1a. It keeps two parts of the layout from cancelling each other.
constexpr std::uint64_t kOddFactor = 0x100000001b3;

// The flags by which ranks say that they are gone lie at the end of a workspace, where no channel may be.
std::size_t gone_flag(std::size_t rank, std::size_t ranks) { return kWorkspaceSize - (ranks - rank) * kFlagStride; }

// The driver or the system does not let these processes share memory, as in containers that do not share the namespaces of IPC
// and PID. There two processes may have the same number, and a driver opens no handle of its own process (invalid_context). All
// other errors are of a GPU or a context that does not work.
bool is_refusal(DriverCode code) {
  using enum DriverCode;
  constexpr std::array kRefusals{invalid_value,  invalid_device, invalid_context, map_failed,   operating_system,
                                 invalid_handle, too_many_peers, not_permitted,   not_supported};
  return std::find(kRefusals.begin(), kRefusals.end(), code) != kRefusals.end();
}

// The GPU of this process that has this identity, or -1: it is hidden from the process.
int device_with(const cuda::Driver& driver, const cuda::DeviceUuid& uuid) {
  int count = 0;
  if (driver.device_get_count.code(&count) != DriverCode::success) return -1;
  for (int device = 0; device < count; ++device) {
    cuda::DeviceUuid one;
    if (driver.device_get_uuid.code(&one, device) == DriverCode::success && text_of(one) == text_of(uuid)) return device;
  }
  return -1;
}

// One number for all on which builds must agree to use each other's workspaces.
std::uint64_t layout_of_build() {
  std::uint64_t layout = 0;
  for (const std::uint64_t part : {sizeof(RankStatement), kWorkspaceSize, sizeof(kernels::DeviceProgram),
                                   sizeof(kernels::WorkspaceBegin), kernels::kMarkedPlace, kernels::kMarkedArea})
    layout = (layout ^ part) * kOddFactor;
  return layout;
}

std::string place_text(Rank rank, const RankStatement& statement) {
  return "rank " + std::to_string(rank) + " (GPU " + std::to_string(statement.device) + ", " + text_of(statement.gpu) + ")";
}

}  // namespace

Result<std::unique_ptr<Workspaces>> Workspaces::create(std::shared_ptr<GpuContext> gpu) {
  std::unique_ptr<Workspaces> made(new Workspaces(std::move(gpu)));
  SETO_TRY(made->allocate());
  return made;
}

Status Workspaces::allocate() {
  const cuda::Driver& driver = gpu_->driver();
  const Status allocated = driver.mem_alloc(&own_, kWorkspaceSize);
  if (!allocated.ok())
    return failure(allocated.code(), "no %zu KiB of memory on GPU %d for the communicator: %s", kWorkspaceSize >> 10,
                   gpu_->device(), std::string(allocated.text()).c_str());
  SETO_TRY(driver.stream_create_with_priority(&stream_, cuda::kStreamNonBlocking, 0));
  SETO_TRY(driver.memset_d8_async(own_, 0, kWorkspaceSize, stream_));
  return driver.stream_synchronize(stream_);
}

Workspaces::~Workspaces() {
  leave();
  const ContextScope scope(*gpu_);
  if (!scope.status().ok()) return;
  const cuda::Driver& driver = gpu_->driver();
  if (stream_ != nullptr) static_cast<void>(driver.stream_destroy.code(stream_));
  if (words_ != nullptr) static_cast<void>(driver.mem_free_host.code(words_));
  if (own_ != 0) static_cast<void>(driver.mem_free.code(own_));
}

void Workspaces::describe(RankStatement& statement) const {
  const cuda::Driver& driver = gpu_->driver();
  statement.layout = layout_of_build();
  statement.process = number_of_process();
  statement.workspace = own_;
  statement.context = reinterpret_cast<std::uint64_t>(gpu_->handle());
  statement.gpu = gpu_->uuid();
  statement.device = gpu_->device();
  statement.handle_code = static_cast<std::uint32_t>(driver.ipc_get_mem_handle.code(&statement.handle, own_));
}

Result<std::string> Workspaces::connect(Rank rank, std::span<const RankStatement> statements, const std::vector<bool>& nearby) {
  rank_ = rank;
  addresses_.assign(statements.size(), 0);
  dead_.assign(statements.size(), false);
  for (const RankStatement& one : statements)
    in_process_.push_back(one.process == statements[static_cast<std::size_t>(rank)].process);
  void* words = nullptr;
  SETO_TRY(gpu_->driver().mem_host_alloc(&words, statements.size() * kFlagStride, cuda::kHostAllocPortable));
  words_ = static_cast<std::uint64_t*>(words);
  if (kWorkspaceSize / 4 < statements.size() * kFlagStride)
    return failure(Code::invalid_usage, "%zu ranks are too many for a communicator on device memory", statements.size());
  std::string findings(statements.size(), kNotMapped);
  for (std::size_t peer = 0; peer < statements.size(); ++peer) {
    if (!nearby[peer]) continue;
    SETO_ASSIGN(const bool mapped, reach(static_cast<Rank>(peer), statements));
    if (mapped) findings[peer] = kMapped;
  }
  return findings;
}

RelayedPairs Workspaces::relayed_pairs(const std::vector<std::string>& findings) {
  RelayedPairs pairs(findings.size());
  for (std::size_t one = 0; one < findings.size(); ++one)
    for (std::size_t other = one + 1; other < findings.size(); ++other)
      if (findings[one][other] != kMapped || findings[other][one] != kMapped) pairs.add(one, other);
  for (std::size_t peer = 0; peer < findings.size(); ++peer)
    if (pairs.has(static_cast<std::size_t>(rank_), peer)) forget(static_cast<Rank>(peer));
  if (!refusal_.empty())
    SETO_LOG_AS(
        warn, (LogOrigin{rank_, 0}),
        "processes of this host do not share memory of GPUs, so their messages go through pinned memory of the host, which "
        "is slower: %s",
        refusal_.c_str());
  return pairs;
}

Result<bool> Workspaces::reach(Rank peer, std::span<const RankStatement> statements) {
  const cuda::Driver& driver = gpu_->driver();
  const RankStatement& own = statements[static_cast<std::size_t>(rank_)];
  const RankStatement& other = statements[static_cast<std::size_t>(peer)];
  addresses_[static_cast<std::size_t>(peer)] = other.workspace;
  if (peer == rank_) return true;
  const bool same_gpu = text_of(own.gpu) == text_of(other.gpu);
  const int device = same_gpu ? gpu_->device() : device_with(driver, other.gpu);
  if (!same_gpu && device >= 0) {
    int reaches = 0;
    SETO_TRY(driver.device_can_access_peer(&reaches, gpu_->device(), device));
    if (reaches == 0) return false;
  }
  if (other.process == own.process) {
    if (same_gpu) return true;
    auto* const context = reinterpret_cast<cuda::Context>(other.context);
    const DriverCode code = driver.ctx_enable_peer_access.code(context, 0);
    if (code == DriverCode::success || code == DriverCode::peer_access_already_enabled) return true;
    return driver.ctx_enable_peer_access.failed(code);
  }
  return open_handle(peer, statements);
}

// A rank whose own memory cannot be mapped maps none either: both ends of a pair know that without asking.
Result<bool> Workspaces::open_handle(Rank peer, std::span<const RankStatement> statements) {
  const cuda::Driver& driver = gpu_->driver();
  for (const Rank one : {peer, rank_})
    if (const auto code = static_cast<DriverCode>(statements[static_cast<std::size_t>(one)].handle_code);
        code != DriverCode::success) {
      const Status failed = driver.ipc_get_mem_handle.failed(code);
      if (is_refusal(code)) return refuse(one, failed);
      return failure(failed.code(), "the memory of %s cannot be shared: %s",
                     place_text(one, statements[static_cast<std::size_t>(one)]).c_str(), std::string(failed.text()).c_str());
    }
  const RankStatement& other = statements[static_cast<std::size_t>(peer)];
  cuda::DevicePointer mapped = 0;
  const DriverCode code = driver.ipc_open_mem_handle.code(&mapped, other.handle, cuda::kIpcLazyPeerAccess);
  if (code == DriverCode::peer_access_unsupported) return false;
  if (code != DriverCode::success) {
    const Status failed = driver.ipc_open_mem_handle.failed(code);
    if (is_refusal(code)) return refuse(peer, failed);
    return failure(failed.code(), "the memory of %s cannot be mapped: %s", place_text(peer, other).c_str(),
                   std::string(failed.text()).c_str());
  }
  mapped_.push_back(mapped);
  addresses_[static_cast<std::size_t>(peer)] = mapped;
  return true;
}

bool Workspaces::refuse(Rank peer, const Status& reason) {
  if (refusal_.empty()) refusal_ = "memory of rank " + std::to_string(peer) + ": " + std::string(reason.text());
  return false;
}

std::size_t Workspaces::channel_capacity(std::size_t ranks) {
  return (gone_flag(0, ranks) - TransferArea::kSize) / TransferArea::kAlignment * TransferArea::kAlignment;
}

void Workspaces::leave() {
  if (std::exchange(left_, true)) return;
  const ContextScope scope(*gpu_);
  if (!scope.status().ok()) return;
  const cuda::Driver& driver = gpu_->driver();
  if (joined_) words_[0] = kGone;
  for (std::size_t peer = 0; peer < addresses_.size() && joined_; ++peer) {
    if (static_cast<Rank>(peer) == rank_ || dead_[peer]) continue;
    const std::size_t flag = gone_flag(static_cast<std::size_t>(rank_), addresses_.size());
    static_cast<void>(
        driver.memcpy_async.code(addresses_[peer] + flag, reinterpret_cast<cuda::DevicePointer>(words_), sizeof kGone, stream_));
  }
  if (stream_ != nullptr) static_cast<void>(driver.stream_synchronize.code(stream_));
  for (const cuda::DevicePointer one : mapped_) static_cast<void>(driver.ipc_close_mem_handle.code(one));
  mapped_.clear();
}

void Workspaces::give_up_other_processes() {
  for (std::size_t peer = 0; peer < dead_.size(); ++peer) mark_dead(static_cast<Rank>(peer));
}

bool Workspaces::all_left() {
  if (!joined_) return true;
  const ContextScope scope(*gpu_);
  const cuda::Driver& driver = gpu_->driver();
  const std::size_t size = addresses_.size() * kFlagStride;
  if (!scope.status().ok() ||
      driver.memcpy_dtoh_async.code(words_, own_ + gone_flag(0, addresses_.size()), size, stream_) != DriverCode::success ||
      driver.stream_synchronize.code(stream_) != DriverCode::success)
    return true;
  for (std::size_t peer = 0; peer < addresses_.size(); ++peer)
    if (static_cast<Rank>(peer) != rank_ && !dead_[peer] &&
        static_cast<std::uint32_t>(words_[peer * kFlagStride / sizeof(*words_)]) != kGone)
      return false;
  return true;
}

}  // namespace seto
