#include "transports/slots/pool.h"

#include <algorithm>
#include <bit>

#include "transports/slots/status_lines.h"

namespace seto::slots {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t rounded(std::size_t size) { return std::bit_ceil(std::max(size, kPage)); }
std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

// Removes and returns the last free range of that size, if there is one.
bool take(std::map<std::size_t, std::vector<std::size_t>>& free, std::size_t size, std::size_t& offset) {
  const auto same = free.find(size);
  if (same == free.end() || same->second.empty()) return false;
  offset = same->second.back();
  same->second.pop_back();
  return true;
}

}  // namespace

// A reader far from its slots is slower than one beside them, but an operation that has no slots fails.
Result<std::size_t> Pool::lease(std::size_t size, int node) {
  const std::size_t need = rounded(size);
  const std::lock_guard lock(mutex_);
  std::size_t offset = 0;
  if (!take_free_slots(need, node, offset)) {
    if (Status made = make_slots(need, node, offset);
        !made.ok() && !take_free_slots(need, kAnyNode, offset) && !split_free_slots(need, offset))
      return made;
  }
  leased_ += need;
  return offset;
}

std::optional<std::size_t> Pool::lease_spare(std::size_t size, int node) {
  constexpr std::size_t kPart = 8;
  const std::size_t need = rounded(size);
  const std::lock_guard lock(mutex_);
  std::size_t offset = 0;
  if (!take_free_slots(need, node, offset)) {
    if (spare_ + need > std::min(end_, limit_) / kPart || !make_slots(need, node, offset).ok()) return std::nullopt;
    spare_ += need;
  }
  leased_ += need;
  return offset;
}

bool Pool::take_free_slots(std::size_t need, int node, std::size_t& offset) {
  if (take(free_[node], need, offset)) return true;
  if (node != kAnyNode) return false;
  return std::any_of(free_.begin(), free_.end(), [&](auto& of_node) { return take(of_node.second, need, offset); });
}

// A larger free range is halved until it has the size; the other halves stay free. For a pool that has nothing else left.
bool Pool::split_free_slots(std::size_t need, std::size_t& offset) {
  for (auto& [node, by_size] : free_)
    for (auto larger = by_size.upper_bound(need); larger != by_size.end(); ++larger) {
      if (larger->second.empty()) continue;
      offset = larger->second.back();
      larger->second.pop_back();
      for (std::size_t half = larger->first / 2; half >= need; half /= 2) by_size[half].push_back(offset + half);
      return true;
    }
  return false;
}

Status Pool::make_slots(std::size_t need, int node, std::size_t& offset) {
  NodeRanges::Range* range = node == kAnyNode ? nullptr : node_ranges_.with_room(need, node);
  if (range == nullptr) {
    Status room = check_room(need, "slots");
    if (!room.ok()) range = node_ranges_.with_room(need, kAnyNode);
    if (!room.ok() && range == nullptr) return room;
  }
  SETO_TRY(check_limit(need, "slots"));
  if (range == nullptr && node != kAnyNode) range = set_aside(need, node);
  std::size_t& next = range != nullptr ? range->next : next_;
  SETO_TRY(populate_(next, need));
  offset = next;
  next += need;
  used_ += need;
  return {};
}

// In a segment that is nearly full, most of the rest stays for boards and other nodes.
NodeRanges::Range* Pool::set_aside(std::size_t need, int node) {
  const std::size_t size = std::max(need, std::min(kNodeRange, (end_ - next_) / 8) / need * need);
  const std::size_t begin = extend(size);
  if (place_) place_(begin, size, node);
  return node_ranges_.add(begin, size, node);
}

void Pool::give_back(std::size_t offset, std::size_t size) {
  const std::lock_guard lock(mutex_);
  free_[node_ranges_.node_of(offset)][rounded(size)].push_back(offset);
  leased_ -= rounded(size);
}

Result<std::size_t> Pool::reserve(std::size_t size) {
  const std::size_t need = whole_pages(size);
  const std::lock_guard lock(mutex_);
  constexpr const char* kBoard = "a communicator's board";
  const auto same = free_boards_.find(need);
  if (same == free_boards_.end() || same->second.empty()) SETO_TRY(check_room(need, kBoard));
  SETO_TRY(check_limit(need, kBoard));
  std::size_t offset = 0;
  if (!take(free_boards_, need, offset)) offset = extend(need);
  used_ += need;
  return offset;
}

// Marks only grow, so those of the next owner must begin at zero. A range that cannot be cleared is not handed out again.
void Pool::give_back_board(std::size_t offset, std::size_t size) {
  const std::size_t need = whole_pages(size);
  const std::lock_guard lock(mutex_);
  if (!release_ || !release_(offset, need).ok()) return;
  used_ -= need;
  if (offset + need == next_)
    next_ = offset;  // its addresses serve boards of other sizes, and slots
  else
    free_boards_[need].push_back(offset);
}

Result<std::size_t> Pool::reserve_status_lines() {
  const std::lock_guard lock(mutex_);
  if (free_status_lines_.empty()) {
    constexpr const char* kLines = "the status of a communicator's member";
    SETO_TRY(check_room(kPage, kLines));
    SETO_TRY(check_limit(kPage, kLines));
    SETO_TRY(populate_(next_, kPage));
    const std::size_t page = extend(kPage);
    used_ += kPage;
    for (std::size_t at = kPage / sizeof(StatusLines); at-- > 0;) free_status_lines_.push_back(page + at * sizeof(StatusLines));
  }
  const std::size_t offset = free_status_lines_.back();
  free_status_lines_.pop_back();
  return offset;
}

void Pool::give_back_status_lines(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  free_status_lines_.push_back(offset);
}

// A higher limit would not help here, so the text does not advise one.
Status Pool::check_room(std::size_t need, const char* what) const {
  if (need <= end_ - next_) return {};
  return failure(
      Code::unavailable,
      "shared memory: %zu bytes for %s do not fit, %zu of the segment are left; use fewer communicators in one context (each "
      "communicator without a context of the user has its own), or fewer ranks on this node",
      need, what, end_ - next_);
}

std::size_t Pool::extend(std::size_t need) {
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
