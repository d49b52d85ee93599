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
// Lives until the communicator is made. A store is a dictionary that the job shares, and may hold what was left by a group of the
// same name that was destroyed, or never made: first the ranks agree on a name of this meeting alone.
class StoreBootstrap final {
 public:
  StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout);

  [[nodiscard]] setoBootstrap_t as_config() { return {&StoreBootstrap::all_gather, this}; }
  // Of the store, if it failed: the library knows only that it did.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  static int all_gather(const void* mine, void* all, size_t size, void* self);
  using Value = std::vector<std::uint8_t>;

  void all_gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t size);
  void meet();
  [[nodiscard]] std::vector<std::string> keys_under(const std::string& prefix) const;
  [[nodiscard]] std::vector<Value> values_of(const std::vector<std::string>& keys) const;
  // Throws once the time is over, naming the ranks that have not come; false: not yet, after a while.
  [[nodiscard]] bool came(const std::vector<std::string>& keys, std::chrono::milliseconds a_while) const;
  void await(const std::vector<std::string>& keys) const;
  [[nodiscard]] std::string absent_of(const std::vector<std::string>& keys) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int ranks_;
  std::chrono::steady_clock::time_point until_;
  std::string meeting_;  // prefix of its keys; empty: not agreed on yet
  std::uint64_t round_ = 0;
  std::string why_;
};

}  // namespace seto::torch_backend
