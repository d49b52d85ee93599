#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/control/local/status_socket.h"
#include "src/core/record/observability.h"

namespace seto {

class Communicator;

// Tells other processes of this user what the communicators of this process do, while there are any with two ranks or more.
// Global state of the process. Any thread, with no lock of a communicator held.
class StatusServer final : public StatusListing {
 public:
  static StatusServer& of_process();

  // Without a socket its status cannot be asked for, which is no failure of the communicator.
  void add(const Communicator& communicator) override;
  void remove(const Communicator& communicator) override;

  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

 private:
  StatusServer() = default;
  [[nodiscard]] Result<std::unique_ptr<StatusSocket>> open();
  [[nodiscard]] std::string tell();

  std::mutex mutex_;  // held while an answer is made, on the control thread
  std::vector<const Communicator*> communicators_;
  std::unique_ptr<StatusSocket> socket_;  // null: there is no communicator, or no descriptor was left
};

}  // namespace seto
