#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "src/api/lifetime/init_support.h"
#include "src/base/fork.h"
#include "src/bootstrap/rendezvous/servers.h"
#include "src/core/device_memory/gpu_context.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// Long, because ranks may be started by hand, one after another.
constexpr std::uint64_t kIdLifeMs = 3'600'000;

Status check_size(int ranks) {
  if (ranks >= 1 && ranks <= kBootstrapRankLimit) return {};
  return failure(Code::invalid_argument, "nranks: %d is not one of 1 to %d", ranks, kBootstrapRankLimit);
}

Status check_rank(Rank rank, int ranks) {
  if (rank >= 0 && rank < ranks) return {};
  return failure(Code::invalid_argument, "rank: %d is not one of 0 to %d", rank, ranks - 1);
}

UniqueIdBytes bytes_of(const setoUniqueId& id) {
  UniqueIdBytes bytes;
  std::copy(std::begin(id.internal), std::end(id.internal), bytes.begin());
  return bytes;
}

// Gives the user a handle only if the communicator works or is still being made.
Status init_rank(setoComm_t* where, const std::shared_ptr<setoComm>& comm, const Rendezvous& rendezvous) {
  Status status = comm->run_or_start(setoComm::Work::making, [shared = comm.get(), rendezvous] {
    return logged_init(shared->rank, shared->ranks, make(*shared, rendezvous));
  });
  if (status.ok() || status.code() == Code::in_progress) hand_over(comm, where);
  return status;
}

Result<std::shared_ptr<setoComm>> checked_handle(int ranks, Rank rank, const setoConfig_t* config) {
  SETO_TRY(check_size(ranks));
  SETO_TRY(check_rank(rank, ranks));
  SETO_ASSIGN(Settings settings, settings_of_environment());
  SETO_ASSIGN(settings, with_struct(std::move(settings), config));
  SETO_TRY(settle_memory(settings));
  refuse_forked_children();
  return new_handle(rank, ranks, std::move(settings));
}

Status init_rank(setoComm_t* where, int ranks, const setoUniqueId& id, Rank rank, const setoConfig_t* config) {
  if (where == nullptr) return null_argument("comm");
  *where = nullptr;
  Result<std::shared_ptr<setoComm>> made = checked_handle(ranks, rank, config);
  if (!made.ok()) return logged_init(rank, ranks, made.status());
  Rendezvous rendezvous;
  rendezvous.id = bytes_of(id);
  return now_or_at_group_end([where, comm = std::move(made).value(), rendezvous] { return init_rank(where, comm, rendezvous); });
}

Status make_id(setoUniqueId* where, UniqueId::Serves serves, const char* name) {
  if (where == nullptr) return null_argument(name);
  SETO_ASSIGN(const Settings settings, settings_of_environment());
  SETO_ASSIGN(const NetworkChoice network, NetworkChoice::parse(NetworkSettings::of(settings.config)));
  SETO_ASSIGN(const UniqueIdBytes bytes, create_unique_id(serves, network, Deadline::after_ms(kIdLifeMs)));
  static_assert(sizeof where->internal == kUniqueIdSize);
  std::memcpy(where->internal, bytes.data(), bytes.size());
  return {};
}

// The settings of each rank of setoCommInitAll: on device memory, each has the GPU of the list.
Result<std::vector<Settings>> settings_of_all(int ranks, const int* devices) {
  SETO_ASSIGN(Settings settings, settings_of_environment());
  const bool lists_gpus = settings.config.memory == Memory::device;
  if (!lists_gpus) SETO_TRY(settle_memory(settings));
  std::vector<Settings> all(static_cast<std::size_t>(ranks), settings);
  if (settings.config.memory != Memory::device) return all;
  SETO_ASSIGN(const cuda::Driver* const driver, process_driver());
  SETO_TRY(driver->init(0));
  int count = 0;
  SETO_TRY(driver->device_get_count(&count));
  for (int rank = 0; rank < ranks; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    if (device < 0 || device >= count)
      return failure(Code::invalid_argument,
                     "devlist: rank %d would use GPU %d, but this process has %d: a list may name a GPU twice", rank, device,
                     count);
    SETO_ASSIGN(all[static_cast<std::size_t>(rank)].gpu, GpuContext::of_device(device));
    all[static_cast<std::size_t>(rank)].config.memory = Memory::device;
  }
  return all;
}

Status init_all(setoComm_t* comms, int ranks, const int* devices) {
  if (comms == nullptr) return null_argument("comms");
  SETO_TRY(check_size(ranks));
  std::fill_n(comms, ranks, nullptr);
  SETO_ASSIGN(const std::vector<Settings> settings, settings_of_all(ranks, devices));
  refuse_forked_children();
  const Rendezvous rendezvous{{}, std::make_shared<InProcessHub>(ranks)};
  std::vector<std::function<Status()>> work;
  std::vector<setoComm_t> made(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto comm = new_handle(rank, ranks, settings[static_cast<std::size_t>(rank)]);
    work.emplace_back(
        [&place = made[static_cast<std::size_t>(rank)], comm, &rendezvous] { return init_rank(&place, comm, rendezvous); });
  }
  Status status = run_together(std::move(work));
  if (status.ok()) {
    std::copy(made.begin(), made.end(), comms);
    return status;
  }
  for (setoComm_t comm : made)
    if (comm != nullptr) std::exchange(comm->handle, nullptr);
  return status;
}

}  // namespace

extern "C" {

setoResult_t setoGetUniqueId(setoUniqueId* uniqueId) {
  return enter([&] { return make_id(uniqueId, UniqueId::Serves::communicator, "uniqueId"); });
}

setoResult_t setoGetJobId(setoUniqueId* jobId) {
  return enter([&] { return make_id(jobId, UniqueId::Serves::job, "jobId"); });
}

setoResult_t setoCommInitRank(setoComm_t* comm, int nranks, setoUniqueId commId, int rank) {
  return enter([&] { return init_rank(comm, nranks, commId, rank, nullptr); });
}

setoResult_t setoCommInitRankConfig(setoComm_t* comm, int nranks, setoUniqueId commId, int rank, setoConfig_t* config) {
  return enter([&] { return init_rank(comm, nranks, commId, rank, config); });
}

setoResult_t setoCommInitRankScalable(setoComm_t* newcomm, int nranks, int myrank, int nId, setoUniqueId* commIds,
                                      setoConfig_t* config) {
  return enter([&]() -> Status {
    if (commIds == nullptr) return null_argument("commIds");
    if (nId < 1) return failure(Code::invalid_argument, "nId: %d; at least one id is needed", nId);
    // All ranks pass the same ids. One id is enough: its server sends results to a few ranks, which forward them. The servers of
    // the other ids are stopped, because no rank will use them.
    for (int i = 1; i < nId; ++i)
      if (std::memcmp(&commIds[i], commIds, sizeof *commIds) != 0) give_up_unique_id(bytes_of(commIds[i]));
    return init_rank(newcomm, nranks, *commIds, myrank, config);
  });
}

setoResult_t setoCommInitAll(setoComm_t* comms, int ndev, const int* devlist) {
  return enter([&] { return init_all(comms, ndev, devlist); });
}

}  // extern "C"
