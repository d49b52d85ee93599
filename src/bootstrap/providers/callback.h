#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"

namespace seto {

// The user's own all_gather: it gathers the same number of bytes from every rank and returns 0 for success. The C API declares
// the same type; this folder does not include that header.
using AllGatherFunction = int (*)(const void* mine, void* all, std::size_t size, void* argument);

struct AllGatherCallback {
  AllGatherFunction function = nullptr;
  void* argument = nullptr;
};

// An all_gather over the user's function: MPI, a key-value store, or anything else. Each all_gather calls the function twice:
// first for the rank, the size and the length of each message, then for the messages, padded to the longest. The first call also
// detects a function that mixes up the ranks.
// The function may block without limit, so the deadline is checked only before each call.
class CallbackBootstrap final : public Bootstrap {
 public:
  static Result<CallbackBootstrap> create(AllGatherCallback callback, Rank rank, int size);

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;
  [[nodiscard]] bool readable_by_others() const override { return true; }

 private:
  CallbackBootstrap(AllGatherCallback callback, Rank rank, int size) : callback_(callback), rank_(rank), size_(size) {}

  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& mine, Deadline until);
  // Returns `length` bytes of each rank, in rank order.
  [[nodiscard]] Result<std::string> call(const void* mine, std::size_t length, Deadline until);
  [[nodiscard]] Result<std::vector<std::size_t>> gather_lengths(std::size_t length, Deadline until);

  AllGatherCallback callback_;
  Rank rank_;
  int size_;
  Status broken_;
};

}  // namespace seto
