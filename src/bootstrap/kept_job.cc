#include "src/bootstrap/kept_job.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "src/bootstrap/join_job.h"

namespace seto {
namespace {

// Never destroyed: a thread that makes a communicator in the background may come here while the process ends. A forked child may
// not use the library, so it never looks at its copy.
struct Job {
  std::mutex mutex;
  std::condition_variable turn_ended;
  std::uint64_t taken = 0;
  std::uint64_t serving = 0;
  std::set<std::uint64_t> ended;      // beyond `serving`
  std::unique_ptr<Bootstrap> joined;  // of the holder of the turn `serving`
};

Job& job() {
  static Job& only = *new Job;
  return only;
}

// The channel may hold the rendezvous of the job, with a thread that must have ended. A turn that is still open keeps it.
struct LeaveAtExit {
  ~LeaveAtExit() {
    std::unique_ptr<Bootstrap> last;
    const std::lock_guard lock(job().mutex);
    if (job().serving == job().taken) last = std::move(job().joined);
  }
};

}  // namespace

JobTurn::JobTurn() {
  static const LeaveAtExit leave_at_exit;
  const std::lock_guard lock(job().mutex);
  number_ = job().taken++;
}

void JobTurn::end() {
  if (std::exchange(ended_, true)) return;
  const std::lock_guard lock(job().mutex);
  job().ended.insert(number_);
  while (job().ended.erase(job().serving) > 0) ++job().serving;
  job().turn_ended.notify_all();
}

Result<std::unique_ptr<KeptJob>> KeptJob::enter(const JobTurn& turn, const Launch& launch, const Config& config, Deadline until) {
  {
    std::unique_lock lock(job().mutex);
    while (job().serving != turn.number_) {
      if (until.passed())
        return failure(Code::timeout,
                       "rank %d: an earlier communicator of this job was still being made at the deadline of the init",
                       launch.rank);
      job().turn_ended.wait_for(lock, std::chrono::milliseconds(std::max(1, until.wait_ms())));
    }
  }
  if (job().joined == nullptr) {
    SETO_ASSIGN(job().joined, join_job(launch, config, until));
  }
  return std::unique_ptr<KeptJob>(new KeptJob(*job().joined));
}

KeptJob::~KeptJob() {
  if (broken_) job().joined.reset();
}

Result<std::vector<std::string>> KeptJob::all_gather(std::string mine, Deadline until) {
  Result<std::vector<std::string>> all = kept_.all_gather(std::move(mine), until);
  broken_ = !all.ok();
  return all;
}

}  // namespace seto
