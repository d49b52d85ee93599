#include "src/bootstrap/rendezvous/pending_connections.h"

#include <algorithm>
#include <limits>

#include "src/base/clock.h"

namespace seto {

void PendingConnections::add(std::uint64_t id) { entries_.push_back({id, monotonic_ns()}); }

void PendingConnections::remove(std::uint64_t id) {
  std::erase_if(entries_, [id](const Entry& one) { return one.id == id; });
}

bool PendingConnections::accepts() const { return !full() || age_ms(entries_.front()) >= limits_.turn_ms; }

std::vector<std::uint64_t> PendingConnections::expired() const {
  std::vector<std::uint64_t> ids;
  for (const Entry& one : entries_) {
    if (age_ms(one) < limits_.stay_ms) break;
    ids.push_back(one.id);
  }
  return ids;
}

int PendingConnections::remaining_ms() const {
  if (entries_.empty()) return std::numeric_limits<int>::max();
  const int age = age_ms(entries_.front());
  if (full() && age < limits_.turn_ms) return limits_.turn_ms - age;
  return std::max(0, limits_.stay_ms - age);
}

int PendingConnections::age_ms(const Entry& one) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  return static_cast<int>(std::min<std::uint64_t>((monotonic_ns() - one.since_ns) / kNsPerMs, 1'000'000));
}

}  // namespace seto
