#include <algorithm>
#include <utility>

#include "src/api/lifetime/init_support.h"
#include "src/core/communicator/communicator.h"
#include "src/core/communicator/parent_bootstrap.h"
#include "src/core/communicator/split_agreement.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// The arguments of one rank's split, kept until the child has been made, on whatever thread.
struct Split {
  std::shared_ptr<setoComm> parent;
  std::shared_ptr<Communicator> communicator;
  SplitChoice choice;
  Status argument_error;
  Settings settings;
  setoComm_t* where = nullptr;
};

// A split makes calls of the parent, which must be ordered like all others: they are made at once, or while the parent accepts no
// other calls.
Status run(Split& split) {
  Communicator& parent = *split.communicator;
  SETO_ASSIGN(std::vector<Rank> members, agree_on_parts(parent, split.choice, split.argument_error));
  const auto own = std::find(members.begin(), members.end(), parent.rank());
  const auto rank = static_cast<Rank>(own - members.begin());
  const auto ranks = static_cast<int>(members.size());
  // The operation in which the ranks agreed has the same version on all of them.
  const InheritedRates inherited = parent.rates().for_part(members);
  std::shared_ptr<setoComm> child = new_handle(rank, std::max(1, ranks), split.settings);
  Status status;
  {
    ParentBootstrap bootstrap(parent, std::move(members));
    if (ranks > 0) status = logged_init(rank, ranks, make_communicator(*child, bootstrap, split.parent->given_up, &inherited));
  }
  if (status.ok() && ranks > 0) hand_over(child, split.where);
  return status;
}

Status run_or_start(const std::shared_ptr<Split>& split) {
  setoComm& parent = *split->parent;
  if (!parent.settings.blocking) return parent.start_split([split] { return run(*split); });
  const CallGuard guard(parent);
  return run(*split);
}

Status check_color(int color) {
  if (color >= 0 || color == SETO_SPLIT_NOCOLOR) return {};
  return failure(Code::invalid_argument, "color: %d is negative and not SETO_SPLIT_NOCOLOR", color);
}

Result<std::shared_ptr<Split>> new_split(setoComm_t comm, const SplitChoice& choice, setoComm_t* newcomm,
                                         const setoConfig_t* config) {
  SETO_TRY(check_handle(comm));
  const CallGuard guard(*comm);
  SETO_ASSIGN(Communicator* const parent, usable(comm));
  auto work = std::make_shared<Split>();
  work->parent = comm->shared_from_this();
  work->communicator = comm->communicator();
  work->choice = choice;
  work->where = newcomm;
  work->argument_error = newcomm == nullptr ? null_argument("newcomm") : check_color(choice.color);
  if (newcomm != nullptr) *newcomm = nullptr;
  Result<Settings> settings = with_struct(inherited(comm->settings, parent->context()), config);
  Status wrong = settings.status();
  if (settings.ok()) {
    work->settings = std::move(settings).value();
    wrong = settle_memory(work->settings);
  }
  if (work->argument_error.ok()) work->argument_error = std::move(wrong);
  return work;
}

Status split(setoComm_t comm, const SplitChoice& choice, setoComm_t* newcomm, const setoConfig_t* config) {
  SETO_ASSIGN(const std::shared_ptr<Split> work, new_split(comm, choice, newcomm, config));
  return now_or_at_group_end([work] { return run_or_start(work); });
}

}  // namespace

extern "C" {

setoResult_t setoCommSplit(setoComm_t comm, int color, int key, setoComm_t* newcomm, setoConfig_t* config) {
  return enter([&] { return split(comm, {color, key}, newcomm, config); });
}

}  // extern "C"
