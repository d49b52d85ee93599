#include "src/base/wakeup.h"

#include <sys/eventfd.h>

namespace seto {

Result<std::shared_ptr<const Wakeup>> Wakeup::create() {
  Fd descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!descriptor.valid()) return system_failure(Code::unavailable, "no descriptor for the wakeup of a context (ulimit -n)");
  return std::make_shared<const Wakeup>(std::move(descriptor));
}

void Wakeup::ring() const { (void)eventfd_write(descriptor_.get(), 1); }

void Wakeup::drain() const {
  eventfd_t rings = 0;
  (void)eventfd_read(descriptor_.get(), &rings);
}

}  // namespace seto
