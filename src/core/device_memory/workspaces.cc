#include "src/core/device_memory/workspaces.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/core/device_memory/memory/device_allocations.h"
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

// The ranks of this host that are in other processes.
std::vector<MemoryExchange::Peer> peers_of(Rank rank, std::span<const RankStatement> statements,
                                           const std::vector<bool>& nearby) {
  std::vector<MemoryExchange::Peer> peers;
  for (std::size_t peer = 0; peer < statements.size(); ++peer)
    if (nearby[peer] && statements[peer].process != statements[static_cast<std::size_t>(rank)].process)
      peers.push_back({static_cast<Rank>(peer), statements[peer].token});
  return peers;
}

std::string place_text(Rank rank, const RankStatement& statement) {
  return "rank " + std::to_string(rank) + " (GPU " + std::to_string(statement.device) + ", " + text_of(statement.gpu) + ")";
}

}  // namespace

Result<std::unique_ptr<Workspaces>> Workspaces::create(std::shared_ptr<GpuContext> gpu) {
  std::unique_ptr<Workspaces> made(new Workspaces(std::move(gpu)));
  SETO_TRY(made->gpu_->driver().stream_create_with_priority(&made->stream_, cuda::kStreamNonBlocking, 0));
  return made;
}

Result<RankStatement> Workspaces::allocate(RankStatement statement) {
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  const cuda::Driver& driver = gpu_->driver();
  const Status allocated = take_memory();
  if (!allocated.ok())
    return failure(allocated.code(), "no %zu KiB of memory on GPU %d for the communicator: %s", kMemoryOfInit >> 10,
                   gpu_->device(), std::string(allocated.text()).c_str());
  SETO_TRY(driver.memset_d8_async(own_, 0, kWorkspaceSize, stream_));
  SETO_TRY(driver.stream_synchronize(stream_));
  statement.workspace = own_;
  if (!by_file_) statement.handle_code = static_cast<std::uint32_t>(driver.ipc_get_mem_handle.code(&statement.handle, own_));
  return statement;
}

Status Workspaces::take_memory() {
  if (!by_file_) return gpu_->driver().mem_alloc(&own_, kMemoryOfInit);
  DriverCode answer{};
  SETO_TRY(own_shared_.map(DeviceAllocations::readers_of(*gpu_), answer));
  own_ = own_shared_.address();
  return {};
}

Workspaces::~Workspaces() {
  leave();
  const ContextScope scope(*gpu_);
  if (!scope.status().ok()) return;
  const cuda::Driver& driver = gpu_->driver();
  if (stream_ != nullptr) static_cast<void>(driver.stream_destroy.code(stream_));
  if (words_ != nullptr) static_cast<void>(driver.mem_free_host.code(words_));
  if (own_ != 0 && !by_file_) static_cast<void>(driver.mem_free.code(own_));
  own_shared_ = {};
}

void Workspaces::describe(RankStatement& statement) {
  statement.layout = layout_of_build();
  statement.process = number_of_process();
  statement.token = random_number();
  statement.context = reinterpret_cast<std::uint64_t>(gpu_->handle());
  statement.gpu = gpu_->uuid();
  statement.device = gpu_->device();
  if (!DeviceAllocations::gives_files(*gpu_)) {
    no_files_ = failure(Code::unavailable, "GPU %d or its driver gives no memory that processes share by file descriptor",
                        gpu_->device());
    return;
  }
  Result<std::unique_ptr<MemoryExchange>> opened = MemoryExchange::open(statement.token);
  no_files_ = opened.status();
  if (opened.ok()) exchange_ = std::move(opened).value();
  statement.gives_files = opened.ok() ? 1 : 0;
}

// Until all have agreed nothing has an address, so what was made in vain is given back without waiting for kernels.
Status Workspaces::agree_on_sharing(Rank rank, const std::vector<RankStatement>& statements, const std::vector<bool>& nearby,
                                    Bootstrap& bootstrap, Deadline until) {
  if (!is_one_process(statements)) {
    const std::vector<MemoryExchange::Peer> peers = peers_of(rank, statements, nearby);
    if (std::all_of(statements.begin(), statements.end(), [](const RankStatement& one) { return one.gives_files != 0; })) {
      no_files_ = hand_over(rank, statements, peers, until);
      SETO_ASSIGN(const std::string obstacle, obstacle_of_any(no_files_, statements.size(), bootstrap, until));
      by_file_ = obstacle.empty();
    }
    if (!no_files_.ok() && !peers.empty())
      SETO_LOG_AS(warn, (LogOrigin{rank, 0}),
                  "processes share memory of GPUs by legacy IPC, so a process that is killed may make kernels of others fail: %s",
                  std::string(no_files_.text()).c_str());
  }
  exchange_.reset();
  if (by_file_) return {};
  shared_.clear();
  own_shared_ = {};
  return {};
}

Status Workspaces::hand_over(Rank rank, std::span<const RankStatement> statements, std::span<const MemoryExchange::Peer> peers,
                             Deadline until) {
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
  PrivateFd file;
  const auto make = [&]() -> Status {
    SETO_ASSIGN(own_shared_, SharedMemory::create(gpu_, kMemoryOfInit));
    SETO_ASSIGN(file, own_shared_.descriptor());
    return {};
  };
  const Status made = make();
  const Result<std::vector<MemoryExchange::Received>> received =
      exchange_->exchange(rank, file.get(), own_shared_.size(), peers, until);
  SETO_TRY(made);
  SETO_TRY(received.status());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const MemoryExchange::Received& one = received.value()[i];
    if (!one.file.valid()) continue;  // that rank says why
    SETO_ASSIGN(const bool reached, gpu_reaches(rank, peers[i].rank, statements));
    if (!reached) continue;
    SETO_ASSIGN(shared_[peers[i].rank], SharedMemory::open(gpu_, one.file, one.size));
  }
  return {};
}

Result<std::string> Workspaces::connect(Rank rank, std::span<const RankStatement> statements, const std::vector<bool>& nearby) {
  const ContextScope scope(*gpu_);
  SETO_TRY(scope.status());
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

// A GPU that is hidden from this process may be reached: the driver says so when its memory is mapped.
Result<bool> Workspaces::gpu_reaches(Rank rank, Rank peer, std::span<const RankStatement> statements) const {
  const cuda::DeviceUuid& own = statements[static_cast<std::size_t>(rank)].gpu;
  const cuda::DeviceUuid& other = statements[static_cast<std::size_t>(peer)].gpu;
  if (text_of(own) == text_of(other)) return true;
  const int device = device_with(gpu_->driver(), other);
  if (device < 0) return true;
  int reaches = 0;
  SETO_TRY(gpu_->driver().device_can_access_peer(&reaches, gpu_->device(), device));
  return reaches != 0;
}

Result<bool> Workspaces::reach(Rank peer, std::span<const RankStatement> statements) {
  const cuda::Driver& driver = gpu_->driver();
  const RankStatement& own = statements[static_cast<std::size_t>(rank_)];
  const RankStatement& other = statements[static_cast<std::size_t>(peer)];
  addresses_[static_cast<std::size_t>(peer)] = other.workspace;
  if (peer == rank_) return true;
  SETO_ASSIGN(const bool reached, gpu_reaches(rank_, peer, statements));
  if (!reached) return false;
  if (other.process != own.process) return by_file_ ? map_shared(peer, statements) : open_handle(peer, statements);
  if (text_of(own.gpu) == text_of(other.gpu)) return true;
  auto* const context = reinterpret_cast<cuda::Context>(other.context);
  const DriverCode code = driver.ctx_enable_peer_access.code(context, 0);
  if (code == DriverCode::success || code == DriverCode::peer_access_already_enabled) return true;
  return driver.ctx_enable_peer_access.failed(code);
}

Result<bool> Workspaces::map_shared(Rank peer, std::span<const RankStatement> statements) {
  const cuda::MemoryAccess user{.location = {.id = gpu_->device()}};
  const auto found = shared_.find(peer);
  if (found == shared_.end()) return false;
  DriverCode answer{};
  const Status mapped = found->second.map({&user, 1}, answer);
  if (mapped.ok()) {
    addresses_[static_cast<std::size_t>(peer)] = found->second.address();
    forget(peer);  // no rank has to wait for the other one: what either maps stays there
    return true;
  }
  if (answer == DriverCode::peer_access_unsupported) return false;
  if (is_refusal(answer)) return refuse(peer, mapped);
  return failure(mapped.code(), "the memory of %s cannot be mapped: %s",
                 place_text(peer, statements[static_cast<std::size_t>(peer)]).c_str(), std::string(mapped.text()).c_str());
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
  shared_.clear();
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
