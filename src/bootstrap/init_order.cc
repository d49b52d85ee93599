#include "src/bootstrap/init_order.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

namespace seto {
namespace {

// Never destroyed: a thread that makes a communicator in the background may use it while the process ends.
struct Turns {
  std::mutex mutex;
  std::condition_variable turn_ended;
  std::uint64_t taken = 0;
  std::uint64_t serving = 0;
  std::set<std::uint64_t> ended;  // beyond `serving`
};

Turns& turns() {
  static Turns& only = *new Turns;
  return only;
}

}  // namespace

InitOrder::InitOrder() {
  const std::lock_guard lock(turns().mutex);
  number_ = turns().taken++;
}

void InitOrder::end() {
  if (std::exchange(ended_, true)) return;
  const std::lock_guard lock(turns().mutex);
  turns().ended.insert(number_);
  while (turns().ended.erase(turns().serving) > 0) ++turns().serving;
  turns().turn_ended.notify_all();
}

Status InitOrder::wait(Deadline until) const {
  std::unique_lock lock(turns().mutex);
  while (turns().serving != number_) {
    if (until.passed())
      return failure(Code::timeout, "an earlier communicator of this job was still being made at the deadline of the init");
    turns().turn_ended.wait_for(lock, std::chrono::milliseconds(std::max(1, until.wait_ms())));
  }
  return {};
}

}  // namespace seto
