#pragma once

#include <cstdint>
#include <deque>

#include "src/base/result.h"
#include "src/base/types.h"

namespace seto::api {

// The custom operations of one communicator. Used by its calling thread only.
class PremulSums final {
 public:
  struct Entry {
    alignas(8) unsigned char scalar[8] = {};  // in the accumulator type
    DataType type = DataType::float32;
    bool alive = false;
  };

  // Returns an operation number of the C API. `scalar` is one value of the type.
  Result<int> add(const void* scalar, DataType type);
  Status remove(int op);
  // Null if the number is not a live operation of this communicator.
  [[nodiscard]] const Entry* find(int op) const;

 private:
  std::deque<Entry> entries_;  // a deque: entries do not move
  std::deque<std::size_t> free_;
};

}  // namespace seto::api
