#include "tests/soak/watcher.h"

#include <chrono>
#include <vector>

namespace seto::soak {

Watcher::Watcher(const Job& job, setoComm_t comm) {
  if (job.plan.watched && comm != nullptr) thread_ = std::thread([this, &job, comm] { watch(job, comm); });
}

void Watcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watcher::watch(const Job& job, setoComm_t comm) {
  std::vector<char> text(std::size_t{64} << 10);
  std::unique_lock lock(mutex_);
  for (int round = 0; !stopped_; ++round) {
    lock.unlock();
    setoResult_t state = setoSuccess;
    setoCommGetAsyncError(comm, &state);
    if (setoCommDump(comm, round % 2 == 0 ? setoFormatJson : setoFormatText, text.data(), text.size(), nullptr) == setoSuccess)
      ++job.board.tally.dumps;
    lock.lock();
    ended_.wait_for(lock, std::chrono::milliseconds(5), [this] { return stopped_; });
  }
}

}  // namespace seto::soak
