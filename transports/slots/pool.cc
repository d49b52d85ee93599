#include "transports/slots/pool.h"

#include <algorithm>
#include <bit>

namespace seto::slots {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t rounded(std::size_t size) { return std::bit_ceil(std::max(size, kPage)); }

}  // namespace

Result<std::size_t> Pool::lease(std::size_t size) {
  const std::size_t need = rounded(size);
  const std::lock_guard lock(mutex_);
  if (auto& same = free_[need]; !same.empty()) {
    const std::size_t offset = same.back();
    same.pop_back();
    leased_ += need;
    return offset;
  }
  if (need > end_ - next_)
    return failure(Code::unavailable, "shared memory: %zu bytes of slots do not fit, %zu of the segment are left", need, end_ - next_);
  SETO_TRY(populate_(next_, need));
  leased_ += need;
  next_ += need;
  return next_ - need;
}

void Pool::give_back(std::size_t offset, std::size_t size) {
  const std::lock_guard lock(mutex_);
  free_[rounded(size)].push_back(offset);
  leased_ -= rounded(size);
}

Result<std::size_t> Pool::reserve(std::size_t size) {
  const std::size_t need = (size + kPage - 1) / kPage * kPage;
  const std::lock_guard lock(mutex_);
  if (need > end_ - next_)
    return failure(Code::unavailable, "shared memory: a board of %zu bytes does not fit, %zu of the segment are left", need, end_ - next_);
  next_ += need;
  return next_ - need;
}

std::size_t Pool::leased() const {
  const std::lock_guard lock(mutex_);
  return leased_;
}

}  // namespace seto::slots
