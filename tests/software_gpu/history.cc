#include "tests/software_gpu/history.h"

namespace seto::software_gpu {

void History::add(const Overwrite& overwrite) {
  const std::uint64_t granule = granule_of(overwrite.address);
  const auto [entry, is_new] = overwrites_.try_emplace(granule);
  if (is_new) order_.push_back(granule);
  std::vector<Overwrite>& list = entry->second;
  if (list.size() == kDepth) list.erase(list.begin());
  list.push_back(overwrite);
  if (order_.size() > kGranules) {
    overwrites_.erase(order_.front());
    order_.pop_front();
  }
}

const std::vector<Overwrite>* History::of(std::uint64_t address) const {
  const auto entry = overwrites_.find(granule_of(address));
  return entry == overwrites_.end() ? nullptr : &entry->second;
}

void History::clear() {
  overwrites_.clear();
  order_.clear();
}

}  // namespace seto::software_gpu
