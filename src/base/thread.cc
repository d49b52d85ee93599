#include "src/base/thread.h"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace seto {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& thrown) {
    error = thrown.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return failure(Code::unavailable, "cannot start thread %s: %s; raise ulimit -u, or run fewer processes", name,
                   std::generic_category().message(error).c_str());
  }
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace seto
