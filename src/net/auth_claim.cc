#include "src/net/auth_claim.h"

#include <cstring>

namespace seto {

bool SeenHellos::add(const HelloId& hello) {
  std::uint64_t number = 0;
  static_assert(sizeof number == sizeof hello);
  std::memcpy(&number, hello.data(), sizeof number);
  if (!seen_.insert(number).second) return false;
  if (order_.size() < kSeenHellosLimit) {
    order_.push_back(number);
    return true;
  }
  seen_.erase(order_[oldest_]);
  order_[oldest_] = number;
  oldest_ = (oldest_ + 1) % kSeenHellosLimit;
  return true;
}

}  // namespace seto
