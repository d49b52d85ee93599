#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "include/seto/seto.h"

namespace seto::torch_backend {

// A c10d Store as the library's bootstrap. Every rank writes its bytes under its own key and reads the keys of the others. The
// object lives until the communicator is made. A store is a dictionary that the whole job shares. It may still hold keys of an
// earlier group with the same name, so the ranks first agree on a name for this attempt.
class StoreBootstrap final {
 public:
  StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout);

  [[nodiscard]] setoBootstrap_t as_config() { return {&StoreBootstrap::all_gather, this}; }
  // The store's error, if it failed: the library only knows that it failed.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  static int all_gather(const void* mine, void* all, size_t size, void* self);
  using Value = std::vector<std::uint8_t>;

  void all_gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t size);
  void meet();
  [[nodiscard]] std::vector<std::string> keys_under(const std::string& prefix) const;
  [[nodiscard]] std::vector<Value> values_of(const std::vector<std::string>& keys) const;
  // Waits for a while and returns false if the keys are not there yet. After the deadline, throws and names the missing ranks.
  [[nodiscard]] bool came(const std::vector<std::string>& keys, std::chrono::milliseconds a_while) const;
  void await(const std::vector<std::string>& keys) const;
  [[nodiscard]] std::string absent_of(const std::vector<std::string>& keys) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int ranks_;
  std::chrono::steady_clock::time_point until_;
  std::string meeting_;  // prefix of the keys of this attempt; empty: not agreed on yet
  std::uint64_t round_ = 0;
  std::string why_;
};

}  // namespace seto::torch_backend
