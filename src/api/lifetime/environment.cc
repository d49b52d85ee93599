#include <unistd.h>

#include <memory>

#include "src/api/lifetime/init_support.h"
#include "src/base/fork.h"
#include "src/bootstrap/providers/join_job.h"
#include "src/core/connect/early_port.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status make_of_job(setoComm& comm, const Launch& launch, const InitOrder& turn) {
  const Deadline until = Deadline::after_ms(comm.settings.config.init_timeout_ms).unless(&comm.given_up);
  const int local_ranks = launch.way == RendezvousKind::local ? launch.ranks : launch.local_ranks;
  SETO_TRY(take_port_early(comm.settings.config, {launch.ranks, local_ranks}));
  SETO_ASSIGN(const std::unique_ptr<Bootstrap> job, join_job(launch, comm.settings.config, turn, until));
  return make_communicator(comm, *job, comm.given_up);
}

// Gives the user a handle only if the communicator works or is still being made.
Status init(setoComm_t* where, const std::shared_ptr<setoComm>& comm, const Launch& launch,
            const std::shared_ptr<InitOrder>& turn) {
  Status status = comm->run_or_start(setoComm::Work::making, [raw = comm.get(), launch, turn] {
    Status made = logged_init(raw->rank, raw->ranks, make_of_job(*raw, launch, *turn));
    turn->end();
    return made;
  });
  if (status.ok() || status.code() == Code::in_progress) hand_over(comm, where);
  return status;
}

struct PlacedHandle {
  std::shared_ptr<setoComm> comm;
  Launch launch;
};

Result<PlacedHandle> checked_handle(const setoConfig_t* config) {
  SETO_ASSIGN(Settings settings, settings_of_environment());
  SETO_ASSIGN(settings, with_struct(std::move(settings), config));
  SETO_TRY(settle_memory(settings));
  if (settings.bootstrap.function != nullptr)
    return failure(Code::invalid_argument,
                   "bootstrap: setoCommInitEnvironment finds the ranks itself; pass a bootstrap to setoCommInitRankConfig");
  SETO_ASSIGN(Launch launch, launch_of(settings.config, environ));
  refuse_forked_children();
  auto comm = new_handle(launch.rank, launch.ranks, std::move(settings));
  return PlacedHandle{std::move(comm), std::move(launch)};
}

Status init_environment(setoComm_t* where, const setoConfig_t* config) {
  if (where == nullptr) return null_argument("comm");
  *where = nullptr;
  const Result<PlacedHandle> made = checked_handle(config);
  if (!made.ok()) return logged_init(kUnknownRank, 0, made.status());
  auto turn = std::make_shared<InitOrder>();
  return now_or_at_group_end([where, made = made.value(), turn] { return init(where, made.comm, made.launch, turn); });
}

}  // namespace

extern "C" setoResult_t setoCommInitEnvironment(setoComm_t* comm, setoConfig_t* config) {
  return enter([&] { return init_environment(comm, config); });
}
