#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"

namespace seto {

// The user's own all_gather: the same number of bytes from every rank, 0 for success. The type of the C API, said again here
// because this folder does not know that header.
using AllGatherFunction = int (*)(const void* mine, void* all, std::size_t size, void* argument);

struct AllGatherCallback {
  AllGatherFunction function = nullptr;
  void* argument = nullptr;
};

// MPI, a store, or anything else that can gather. Two calls of the function per all_gather: first rank, size and length of each
// message, which also finds a function that mixes up the ranks, then the messages padded to the longest.
// The function blocks as long as it likes: the deadline is looked at before each of its calls only.
class CallbackBootstrap final : public Bootstrap {
 public:
  static Result<CallbackBootstrap> create(AllGatherCallback callback, Rank rank, int size);

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;

 private:
  CallbackBootstrap(AllGatherCallback callback, Rank rank, int size) : callback_(callback), rank_(rank), size_(size) {}

  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& mine, Deadline until);
  // Returns rank after rank, `length` bytes each.
  [[nodiscard]] Result<std::string> call(const void* mine, std::size_t length, Deadline until);
  [[nodiscard]] Result<std::vector<std::size_t>> gather_lengths(std::size_t length, Deadline until);

  AllGatherCallback callback_;
  Rank rank_;
  int size_;
  Status broken_;
};

}  // namespace seto
