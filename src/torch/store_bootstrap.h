#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// A c10d Store as the library's bootstrap: every rank writes what it brings under its own key, and reads those of the others.
// Lives until the communicator is made. A store is a dictionary that the job shares; keys begin with the prefix of the group.
class StoreBootstrap final {
 public:
  StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout);

  [[nodiscard]] setoBootstrap_t as_config() { return {&StoreBootstrap::all_gather, this}; }
  // Of the store, if it failed: the library knows only that it did.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  static int all_gather(const void* mine, void* all, size_t size, void* self);
  void all_gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t size);
  [[nodiscard]] std::string absent_of(const std::vector<std::string>& keys) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int ranks_;
  std::chrono::steady_clock::time_point until_;
  std::uint64_t round_ = 0;
  std::string why_;
};

}  // namespace seto::torch_backend
