#include <unistd.h>

#include <memory>

#include "src/api/lifetime/init_support.h"
#include "src/base/fork.h"
#include "src/bootstrap/providers/join_job.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status make_of_job(setoComm& comm, const Launch& launch, const JobTurn& turn) {
  const Deadline until = Deadline::after_ms(comm.settings.config.init_timeout_ms).unless(&comm.given_up);
  SETO_ASSIGN(const std::unique_ptr<Bootstrap> job, join_job(launch, comm.settings.config, turn, until));
  return make_over(comm, *job, comm.given_up);
}

// The user gets a communicator that works, or one that is still being made.
Status init(setoComm_t* where, const std::shared_ptr<setoComm>& comm, const Launch& launch,
            const std::shared_ptr<JobTurn>& turn) {
  Status status = comm->run_or_start(setoComm::Work::making, [raw = comm.get(), launch, turn] {
    Status made = make_of_job(*raw, launch, *turn);
    turn->end();
    return made;
  });
  if (status.ok() || status.code() == Code::in_progress) hand_over(comm, where);
  return status;
}

Status init_environment(setoComm_t* where, const setoConfig_t* config) {
  if (where == nullptr) return null_argument("comm");
  *where = nullptr;
  SETO_ASSIGN(Settings settings, settings_of_environment());
  SETO_ASSIGN(settings, with_struct(std::move(settings), config));
  if (settings.bootstrap.function != nullptr)
    return failure(Code::invalid_argument,
                   "bootstrap: setoCommInitEnvironment finds the ranks by itself; pass it to setoCommInitRankConfig");
  SETO_ASSIGN(const Launch launch, launch_of(settings.config, environ));
  refuse_forked_children();
  auto comm = new_handle(launch.rank, launch.ranks, std::move(settings));
  auto turn = std::make_shared<JobTurn>();
  return now_or_at_group_end([where, comm, launch, turn] { return init(where, comm, launch, turn); });
}

}  // namespace

extern "C" setoResult_t setoCommInitEnvironment(setoComm_t* comm, setoConfig_t* config) {
  return enter([&] { return init_environment(comm, config); });
}
