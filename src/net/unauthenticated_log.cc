#include "src/net/unauthenticated_log.h"

#include <algorithm>

namespace seto {

std::optional<std::string> UnauthenticatedLog::note(const std::string& host, std::uint64_t now_ns, const std::string& what) {
  auto found = entries_.find(host);
  if (found != entries_.end() && now_ns - found->second.logged_ns < kMinuteNs) {
    ++found->second.suppressed;
    return std::nullopt;
  }
  if (found == entries_.end()) {
    if (entries_.size() >= kAddressLimit) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& left, const auto& right) {
        return left.second.logged_ns < right.second.logged_ns;
      }));
    }
    found = entries_.try_emplace(host).first;
  }
  std::string line = "closed a connection from " + host + " " + what;
  if (found->second.suppressed > 0) {
    line += " (and " + std::to_string(found->second.suppressed) + " more from there since the last line like this)";
  }
  found->second = {now_ns, 0};
  return line;
}

}  // namespace seto
