#include "src/bootstrap/rendezvous/pending_connections.h"

#include <algorithm>
#include <limits>

#include "src/base/clock.h"

namespace seto {

void Crowd::add(std::uint64_t id) { present_.push_back({id, monotonic_ns()}); }

void Crowd::remove(std::uint64_t id) {
  std::erase_if(present_, [id](const Present& one) { return one.id == id; });
}

bool Crowd::takes() const { return !full() || age_ms(present_.front()) >= manners_.turn_ms; }

std::vector<std::uint64_t> Crowd::overstayed() const {
  std::vector<std::uint64_t> ids;
  for (const Present& one : present_) {
    if (age_ms(one) < manners_.stay_ms) break;
    ids.push_back(one.id);
  }
  return ids;
}

int Crowd::remaining_ms() const {
  if (present_.empty()) return std::numeric_limits<int>::max();
  const int age = age_ms(present_.front());
  if (full() && age < manners_.turn_ms) return manners_.turn_ms - age;
  return std::max(0, manners_.stay_ms - age);
}

int Crowd::age_ms(const Present& one) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  return static_cast<int>(std::min<std::uint64_t>((monotonic_ns() - one.since_ns) / kNsPerMs, 1'000'000));
}

}  // namespace seto
