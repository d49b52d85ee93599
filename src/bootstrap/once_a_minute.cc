#include "src/bootstrap/once_a_minute.h"

#include "src/base/clock.h"

namespace seto {

bool OnceAMinute::due(const std::string& who) {
  const std::uint64_t now = monotonic_ns();
  const auto found = last_ns_.find(who);
  if (found != last_ns_.end() && now - found->second < kPeriodNs) return false;
  // Whoever commands more addresses than these gets a line for some of them again.
  if (last_ns_.size() >= kAddressLimit) last_ns_.clear();
  last_ns_[who] = now;
  return true;
}

}  // namespace seto
