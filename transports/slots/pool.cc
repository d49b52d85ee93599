#include "transports/slots/pool.h"

#include <algorithm>
#include <bit>

namespace seto::slots {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t rounded(std::size_t size) { return std::bit_ceil(std::max(size, kPage)); }
std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

// The last of that size, if there is one.
bool take(std::map<std::size_t, std::vector<std::size_t>>& free, std::size_t size, std::size_t& offset) {
  const auto same = free.find(size);
  if (same == free.end() || same->second.empty()) return false;
  offset = same->second.back();
  same->second.pop_back();
  return true;
}

}  // namespace

Result<std::size_t> Pool::lease(std::size_t size) {
  const std::size_t need = rounded(size);
  const std::lock_guard lock(mutex_);
  std::size_t offset = 0;
  if (!take(free_, need, offset)) {
    SETO_TRY(check_limit(need, "slots"));
    SETO_ASSIGN(offset, extend(need, "slots"));
    if (Status populated = populate_(offset, need); !populated.ok()) {
      next_ -= need;
      return populated;
    }
    used_ += need;
  }
  leased_ += need;
  return offset;
}

void Pool::give_back(std::size_t offset, std::size_t size) {
  const std::lock_guard lock(mutex_);
  free_[rounded(size)].push_back(offset);
  leased_ -= rounded(size);
}

Result<std::size_t> Pool::reserve(std::size_t size) {
  const std::size_t need = whole_pages(size);
  const std::lock_guard lock(mutex_);
  SETO_TRY(check_limit(need, "a communicator's board"));
  std::size_t offset = 0;
  if (!take(free_boards_, need, offset)) {
    SETO_ASSIGN(offset, extend(need, "a communicator's board"));
  }
  used_ += need;
  return offset;
}

// Marks only grow, so the next owner's must begin at zero. A range that cannot be cleared is not handed out again.
void Pool::give_back_board(std::size_t offset, std::size_t size) {
  const std::size_t need = whole_pages(size);
  const std::lock_guard lock(mutex_);
  if (!release_ || !release_(offset, need).ok()) return;
  free_boards_[need].push_back(offset);
  used_ -= need;
}

Result<std::size_t> Pool::extend(std::size_t need, const char* what) {
  if (need > end_ - next_)
    return failure(Code::unavailable, "shared memory: %zu bytes for %s do not fit, %zu of the segment are left", need, what,
                   end_ - next_);
  next_ += need;
  return next_ - need;
}

Status Pool::check_limit(std::size_t need, const char* what) const {
  if (need <= limit_ && used_ <= limit_ - need) return {};
  return failure(
      Code::unavailable,
      "shared memory: %zu bytes for %s beside the %zu in use are over the limit of %zu; raise SETO_SHARED_MEMORY_LIMIT", need,
      what, used_, limit_);
}

std::size_t Pool::leased() const {
  const std::lock_guard lock(mutex_);
  return leased_;
}

std::size_t Pool::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace seto::slots
