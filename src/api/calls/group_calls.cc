#include "src/api/calls/group_calls.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <utility>

#include "src/core/host_stream/stream_table.h"

namespace seto::api {
namespace {

std::vector<std::shared_ptr<setoComm>>& members() {
  thread_local std::vector<std::shared_ptr<setoComm>> communicators;
  return communicators;
}

// A call inside each communicator of the group that ends: while it lives, none of them goes.
class Company final {
 public:
  Company() {
    for (const std::shared_ptr<setoComm>& comm : communicators_) inside_.emplace_back(*comm);
  }

 private:
  const std::vector<std::shared_ptr<setoComm>> communicators_ = std::exchange(members(), {});
  std::deque<Inside> inside_;
};

}  // namespace

Result<std::shared_ptr<HostStream>> stream_of(setoStream_t stream) {
  if (stream == nullptr) return std::shared_ptr<HostStream>();
  return HostStreams::of_process().find(std::bit_cast<HostStreams::Handle>(stream));
}

Result<CallGroup::Place> place_in_group(setoComm_t comm, setoStream_t stream) {
  SETO_TRY(check_handle(comm));
  const Inside inside(*comm);
  SETO_ASSIGN(Communicator* const communicator, usable(comm));
  SETO_ASSIGN(std::shared_ptr<HostStream> host_stream, stream_of(stream));
  const std::shared_ptr<setoComm> share = comm->shared_from_this();
  if (std::find(members().begin(), members().end(), share) == members().end()) members().push_back(share);
  return CallGroup::Place{communicator, std::move(host_stream), [share]() -> Status {
                            if (share->usable.load(std::memory_order_acquire) != nullptr) return {};
                            return failure(Code::invalid_usage,
                                           "this group holds calls of a communicator that was ended before them: %s",
                                           std::string(share->why_unusable().text()).c_str());
                          }};
}

Status end_group() {
  if (CallGroup::of_thread().depth() > 1) return CallGroup::of_thread().end();
  const Company company;
  return CallGroup::of_thread().end();
}

Result<double> simulate_group() {
  constexpr double kMicroseconds = 1e6;
  if (CallGroup::of_thread().depth() > 1) return CallGroup::of_thread().simulate();
  const Company company;
  SETO_ASSIGN(const double seconds, CallGroup::of_thread().simulate());
  return seconds * kMicroseconds;
}

void drop_group() {
  CallGroup::of_thread().drop();
  if (CallGroup::of_thread().depth() == 0) members().clear();
}

}  // namespace seto::api
