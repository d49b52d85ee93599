#include "src/api/calls/group_calls.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <new>
#include <optional>
#include <utility>

#include "src/api/support/thread_group.h"
#include "src/core/communicator/communicator.h"
#include "src/core/host_stream/stream_table.h"

namespace seto::api {
namespace {

// Holds a CallGuard on each communicator of the group while the group ends, so that none of them is freed.
class GroupGuard final {
 public:
  GroupGuard() {
    for (const std::shared_ptr<setoComm>& comm : communicators_) guards_.emplace_back(*comm);
  }

 private:
  const std::vector<std::shared_ptr<setoComm>> communicators_ = std::exchange(thread_group().communicators, {});
  std::deque<CallGuard> guards_;
};

}  // namespace

Result<std::shared_ptr<HostStream>> stream_of(setoStream_t stream) {
  if (stream == nullptr) return std::shared_ptr<HostStream>();
  return StreamTable::of_process().find(std::bit_cast<StreamTable::Handle>(stream));
}

Result<CallGroup::Target> group_target(setoComm_t comm, setoStream_t stream) {
  SETO_TRY(check_handle(comm));
  const CallGuard guard(*comm);
  SETO_ASSIGN(Communicator* const communicator, usable(comm));
  SETO_ASSIGN(std::shared_ptr<HostStream> host_stream, stream_of(stream));
  const std::shared_ptr<setoComm> share = comm->shared_from_this();
  std::vector<std::shared_ptr<setoComm>>& members = thread_group().communicators;
  if (std::find(members.begin(), members.end(), share) == members.end()) members.push_back(share);
  return CallGroup::Target{communicator, std::move(host_stream), [share]() -> Status {
                             if (share->usable.load(std::memory_order_acquire) != nullptr) return {};
                             return failure(Code::invalid_usage,
                                            "this group holds calls of a communicator that was ended before them: %s",
                                            std::string(share->why_unusable().text()).c_str());
                           }};
}

Status end_group() {
  if (thread_group().calls.depth() > 1) return thread_group().calls.end();
  std::optional<GroupGuard> guard;
  try {
    guard.emplace();
  } catch (const std::bad_alloc&) {
    drop_group();  // else later calls would join it
    throw;
  }
  return thread_group().calls.end();
}

Result<double> simulate_group() {
  constexpr double kMicroseconds = 1e6;
  if (thread_group().calls.depth() > 1) return thread_group().calls.simulate();
  const GroupGuard guard;
  SETO_ASSIGN(const double seconds, thread_group().calls.simulate());
  return seconds * kMicroseconds;
}

void drop_group() {
  thread_group().calls.drop();
  if (thread_group().calls.depth() == 0) thread_group().communicators.clear();
}

}  // namespace seto::api
