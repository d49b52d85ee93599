#include <exception>
#include <new>

#include "src/api/calls/device_calls.h"
#include "src/api/calls/group_calls.h"
#include "src/api/lifetime/init_support.h"
#include "src/api/support/thread_group.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status end() {
  const bool outermost = group_depth() == 1;
  if (outermost && has_collected() && (!thread_group().calls.empty() || has_queued())) {
    drop_collected();
    drop_queued();
    drop_group();
    return failure(
        Code::invalid_usage,
        "setoGroupEnd: one group holds both operations and calls that make or finalize communicators; nothing was issued, "
        "use a group for each");
  }
  // Kernels first: they run while the calls on host memory are waited for.
  Status launched;
  std::exception_ptr missing;  // memory, for kernels
  try {
    if (outermost) launched = launch_queued();
  } catch (const std::bad_alloc&) {
    missing = std::current_exception();
  }
  Status ended = end_group();
  if (missing != nullptr) std::rethrow_exception(missing);
  return launched.ok() ? ended : launched;
}

// The group ends even if the call's own arguments are wrong.
Status simulate(setoSimInfo_t* info) {
  Status wrong = info == nullptr
                     ? null_argument("simInfo")
                     : check_struct(info, {"simInfo", sizeof(setoSimInfo_t), sizeof(setoSimInfo_t), SETO_SIM_INFO_MAGIC});
  if (wrong.ok()) info->estimatedTime = -1.0F;
  if (wrong.ok() && group_depth() == 1 && has_collected())
    wrong = failure(Code::invalid_usage,
                    "setoGroupSimulateEnd: this group holds calls that make or finalize communicators, which have no estimate; "
                    "nothing was done");
  if (wrong.ok() && group_depth() == 1 && has_queued())
    wrong =
        failure(Code::invalid_usage,
                "setoGroupSimulateEnd: this group holds calls on device memory, which have no estimate yet; nothing was done");
  if (!wrong.ok()) {
    if (group_depth() <= 1) drop_collected();
    if (group_depth() <= 1) drop_queued();
    drop_group();
    return wrong;
  }
  SETO_ASSIGN(const double microseconds, simulate_group());
  info->estimatedTime = static_cast<float>(microseconds);
  return {};
}

}  // namespace

extern "C" {

setoResult_t setoGroupStart(void) {
  return enter([]() -> Status {
    thread_group().calls.start();
    note_group_depth();
    return {};
  });
}

setoResult_t setoGroupEnd(void) {
  return enter([]() -> Status {
    Status ended;
    try {
      ended = end();
    } catch (const std::bad_alloc&) {
      note_group_depth();
      if (group_depth() == 0) drop_collected();
      throw;
    }
    note_group_depth();
    if (group_depth() > 0) return ended;
    if (ended.ok()) return run_collected();
    drop_collected();
    return ended;
  });
}

setoResult_t setoGroupSimulateEnd(setoSimInfo_t* simInfo) {
  return enter([&]() -> Status {
    Status ended = simulate(simInfo);
    note_group_depth();
    return ended;
  });
}

}  // extern "C"
