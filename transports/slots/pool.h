#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "transports/slots/node_ranges.h"

namespace seto::slots {

// Makes a range of the segment usable, or returns why it cannot. Offset in bytes from the start of the segment.
using Populate = std::function<Status(std::size_t offset, std::size_t size)>;

// Releases the memory of a range. The range reads as zeros afterwards, for peers too.
using Release = std::function<Status(std::size_t offset, std::size_t size)>;

// Asks the system to take the pages of a range from a NUMA node. Called before they exist. It is a hint, which cannot fail.
using Place = std::function<void(std::size_t offset, std::size_t size, int node)>;

// Addresses that are set aside for slots of one NUMA node at a time. Not all of them need to be used: only pages are memory.
inline constexpr std::size_t kNodeRange = std::size_t{64} << 20;

// Allocates ranges of one segment for boards, status lines and slots. Sizes of slots are rounded up to powers of two from a page
// on, so that a returned range fits the next stream; a returned board fits boards of the same size. Thread safe; not used on the
// data path.
class Pool final {
 public:
  // `limit`: bytes that may be allocated, including those before `begin`. Boards count in full, though they are sparse.
  Pool(std::size_t begin, std::size_t end, Populate populate, Release release = {},
       std::size_t limit = std::numeric_limits<std::size_t>::max(), Place place = {})
      : used_(begin),
        next_(begin),
        end_(end),
        limit_(limit),
        populate_(std::move(populate)),
        release_(std::move(release)),
        place_(std::move(place)) {}

  // Slots whose pages should lie on that NUMA node. Slots of another node serve where there is neither memory nor room for these.
  Result<std::size_t> lease(std::size_t size, int node = kAnyNode);
  void give_back(std::size_t offset, std::size_t size);
  // Slots that are wanted for speed alone: all that were ever made for this are an eighth of the memory at most. Nothing: there
  // are no more.
  std::optional<std::size_t> lease_spare(std::size_t size, int node);
  // A board: all zeros, without memory until it is touched.
  Result<std::size_t> reserve(std::size_t size);
  // No member reads that board any more.
  void give_back_board(std::size_t offset, std::size_t size);
  // Room for the StatusLines of a member, with any content. It may be read after it is given back, so it serves only StatusLines
  // as long as the pool lives.
  Result<std::size_t> reserve_status_lines();
  void give_back_status_lines(std::size_t offset);

  [[nodiscard]] std::size_t leased() const;
  // Bytes allocated so far, without returned boards.
  [[nodiscard]] std::size_t used() const;

 private:
  // The caller holds the mutex.
  [[nodiscard]] bool take_free_slots(std::size_t need, int node, std::size_t& offset);
  [[nodiscard]] bool split_free_slots(std::size_t need, std::size_t& offset);
  [[nodiscard]] Status make_slots(std::size_t need, int node, std::size_t& offset);
  NodeRanges::Range* set_aside(std::size_t need, int node);  // after check_room
  [[nodiscard]] Status check_room(std::size_t need, const char* what) const;
  std::size_t extend(std::size_t need);  // after check_room
  [[nodiscard]] Status check_limit(std::size_t need, const char* what) const;

  mutable std::mutex mutex_;
  std::size_t used_;
  std::size_t next_;
  std::size_t end_;
  std::size_t limit_;
  std::size_t leased_ = 0;
  std::size_t spare_ = 0;  // bytes made by lease_spare
  Populate populate_;
  Release release_;
  Place place_;
  NodeRanges node_ranges_;
  std::map<int, std::map<std::size_t, std::vector<std::size_t>>> free_;  // slots, by NUMA node and size
  std::map<std::size_t, std::vector<std::size_t>> free_boards_;          // by size
  std::vector<std::size_t> free_status_lines_;
};

}  // namespace seto::slots
