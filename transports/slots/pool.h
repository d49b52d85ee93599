#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "src/base/result.h"

namespace seto::slots {

// Where the pool's memory comes from: makes a range of a segment usable, or says why not. Unit: bytes from the segment's begin.
using Populate = std::function<Status(std::size_t offset, std::size_t size)>;

// Gives the memory behind a range back: it reads as zeros then, for peers too.
using Release = std::function<Status(std::size_t offset, std::size_t size)>;

// Hands out ranges of one segment, boards and slots. Sizes of slots are rounded up to powers of two from a page on, so that
// whatever one stream returns fits the next; a board fits boards of its own size. Thread safe; never on the path of a slice.
class Pool final {
 public:
  // `limit`: bytes that may be handed out, with what lies before `begin`; boards count whole, though they are sparse.
  Pool(std::size_t begin, std::size_t end, Populate populate, Release release = {},
       std::size_t limit = std::numeric_limits<std::size_t>::max())
      : used_(begin), next_(begin), end_(end), limit_(limit), populate_(std::move(populate)), release_(std::move(release)) {}

  Result<std::size_t> lease(std::size_t size);
  void give_back(std::size_t offset, std::size_t size);
  // A board: zeros, without memory behind it until it is touched.
  Result<std::size_t> reserve(std::size_t size);
  // Nobody looks at that board any more.
  void give_back_board(std::size_t offset, std::size_t size);

  [[nodiscard]] std::size_t leased() const;
  // Handed out so far, boards that came back not among it.
  [[nodiscard]] std::size_t used() const;

 private:
  // With the mutex held.
  Result<std::size_t> extend(std::size_t need, const char* what);
  [[nodiscard]] Status check_limit(std::size_t need, const char* what) const;

  mutable std::mutex mutex_;
  std::size_t used_;
  std::size_t next_;
  std::size_t end_;
  std::size_t limit_;
  std::size_t leased_ = 0;
  Populate populate_;
  Release release_;
  std::map<std::size_t, std::vector<std::size_t>> free_;         // slots, by size
  std::map<std::size_t, std::vector<std::size_t>> free_boards_;  // by size
};

}  // namespace seto::slots
