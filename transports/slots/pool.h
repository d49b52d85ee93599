#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "src/base/result.h"

namespace seto::slots {

// Where the pool's memory comes from: makes a range of a segment usable, or says why not. Unit: bytes from the segment's begin.
using Populate = std::function<Status(std::size_t offset, std::size_t size)>;

// Hands out ranges of one segment: boards that stay, slots that come and go. Sizes are rounded up to powers of two from a page
// on, so that whatever one stream returns fits the next. Thread safe; never on the path of a slice.
class Pool final {
 public:
  Pool(std::size_t begin, std::size_t end, Populate populate) : next_(begin), end_(end), populate_(std::move(populate)) {}

  Result<std::size_t> lease(std::size_t size);
  void give_back(std::size_t offset, std::size_t size);
  // Room without memory behind it until it is touched: for boards, which are sparse.
  Result<std::size_t> reserve(std::size_t size);

  [[nodiscard]] std::size_t leased() const;

 private:
  mutable std::mutex mutex_;
  std::size_t next_;
  std::size_t end_;
  std::size_t leased_ = 0;
  Populate populate_;
  std::map<std::size_t, std::vector<std::size_t>> free_;  // by size
};

}  // namespace seto::slots
