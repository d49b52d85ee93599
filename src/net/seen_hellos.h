#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "src/net/auth_claim.h"

namespace seto {

// A longer history is forgotten, the oldest first: 1,000 peers with 16 connections each, in 0.8 MiB.
inline constexpr std::size_t kSeenHellosLimit = 16'384;

// The hellos that named a key here. Each is unique, because its nonce is random: one that comes again was overheard and repeated
// by a process that may not have the key. One thread at a time.
class SeenHellos final {
 public:
  // False: this hello has come before.
  [[nodiscard]] bool add(const HelloId& hello);

 private:
  std::unordered_set<std::uint64_t> seen_;
  std::vector<std::uint64_t> order_;  // a ring once it is full
  std::size_t oldest_ = 0;
};

}  // namespace seto
