#include "src/core/dump/status_server.h"

#include <utility>

#include "src/base/log.h"
#include "src/control/control_thread.h"
#include "src/core/communicator/communicator.h"
#include "src/core/dump/status_format.h"

namespace seto {

StatusServer& StatusServer::of_process() {
  static StatusServer* const only = new StatusServer;  // never destroyed: communicators may outlive static objects
  return *only;
}

void StatusServer::add(const Communicator& communicator) {
  if (communicator.ranks() < 2) return;
  const std::lock_guard lock(mutex_);
  communicators_.push_back(&communicator);
  if (socket_ != nullptr) return;
  Result<std::unique_ptr<StatusSocket>> made = open();
  if (made.ok())
    socket_ = std::move(made).value();
  else
    SETO_LOG_AS(info, (LogOrigin{communicator.rank(), 0}), "seto status does not know this process: %s",
                std::string(made.status().text()).c_str());
}

// The handler of the socket takes the lock, so the socket is closed without it.
void StatusServer::remove(const Communicator& communicator) {
  std::unique_ptr<StatusSocket> unused;
  const std::lock_guard lock(mutex_);
  std::erase(communicators_, &communicator);
  if (communicators_.empty()) unused = std::move(socket_);
}

Result<std::unique_ptr<StatusSocket>> StatusServer::open() {
  SETO_ASSIGN(ControlThread* const control, ControlThread::of_process());
  return StatusSocket::create(*control, [this] { return tell(); });
}

std::string StatusServer::tell() {
  const std::lock_guard lock(mutex_);
  return status_of(communicators_, kLongestStatus);
}

}  // namespace seto
