#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "src/core/neighbour.h"

namespace seto {

// The contexts of this process that make one communicator together. Of each other process of the machine one of them meets all
// contexts at once, and brings the connections to the others. Any thread.
class Party final {
 public:
  // The same for all `guests` of this process that name the attempt; forgotten by the process once all have, or the time is up.
  static std::shared_ptr<Party> of_process(AttemptId attempt, std::size_t guests, Deadline until);

  // How the meeting with that process went; once.
  void bring(const std::string& process, const Result<Connections>& met);
  // The connection to one that another context meets. Blocks until it has.
  [[nodiscard]] Result<std::shared_ptr<Connection>> connection_to(const PeerAddress& peer, Deadline until);

 private:
  std::mutex mutex_;
  std::condition_variable brought_;
  std::map<std::string, Result<Connections>> met_;  // by process
};

}  // namespace seto
