#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transports/shm/local_process.h"

namespace seto {

// Shared by the contexts of this process that make one communicator together. For each other process of the host, one context
// does the handshake for all contexts, and publishes the connections here. Any thread.
class ProcessSetup final {
 public:
  // Returns the same object to all `contexts` of this process that state this attempt. The process drops its reference when all
  // have asked, or after the deadline.
  static std::shared_ptr<ProcessSetup> of_process(AttemptId attempt, std::size_t contexts, Deadline until);

  // The result of the handshake with that process. Called once for each process.
  void publish(const std::string& process, const Result<ShmConnections>& result);
  // The connection to that context. Blocks until a context of this process has published it.
  [[nodiscard]] Result<std::shared_ptr<ShmConnection>> connection_to(const PeerContext& peer, Deadline until);

 private:
  std::mutex mutex_;
  std::condition_variable published_;
  std::map<std::string, Result<ShmConnections>> results_;  // by process
};

}  // namespace seto
