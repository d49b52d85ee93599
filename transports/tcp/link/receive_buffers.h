#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/result.h"

namespace seto::tcp {

class ReceiveShare;

// Memory into which messages are received, in sizes of powers of two. What was given back last is taken first, because it is
// still in the cache. Each peer takes it through its ReceiveShare. Not thread safe: the domain's lock covers it.
class ReceiveBuffers final {
 public:
  static constexpr std::size_t kAlignment = 64;

  ReceiveBuffers() = default;
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;
  ~ReceiveBuffers();

  // Null: out of memory, or beyond the limit of what may be in use at once.
  std::byte* take(std::size_t size);
  void give_back(std::byte* memory, std::size_t size);

  [[nodiscard]] std::size_t in_use() const { return in_use_; }
  [[nodiscard]] std::size_t limit() const { return limit_; }
  void set_limit(std::size_t limit);

 private:
  friend class ReceiveShare;

  static constexpr std::size_t kClasses = 32;
  static constexpr std::size_t kKept = std::size_t{32} << 20;  // bytes that wait for their next use

  // Bytes that the limit leaves.
  [[nodiscard]] std::size_t room() const { return limit_ - std::min(limit_, in_use_ + charged_); }
  void renew_shares();

  std::array<std::vector<std::byte*>, kClasses> free_;
  std::size_t in_use_ = 0;
  std::size_t charged_ = 0;  // of shares, for memory that is not from here
  std::size_t kept_ = 0;
  std::size_t limit_ = std::size_t{4} << 30;
  std::vector<ReceiveShare*> shares_;
  std::size_t assured_ = 0;  // bytes that each share may always use
  std::size_t beyond_ = 0;   // bytes that all shares together use beyond that
};

// The part of one peer. Half of the limit is divided equally: a peer may use its part of that, unless
// others had filled the memory before it joined. The other half is there for
// all. A peer may have as much of it as it leaves free, so that one peer that takes all it can leaves half of it to the others,
// and each of several such peers leaves as much as it has.
class ReceiveShare final {
 public:
  explicit ReceiveShare(ReceiveBuffers& buffers);
  ReceiveShare(const ReceiveShare&) = delete;
  ReceiveShare& operator=(const ReceiveShare&) = delete;
  ~ReceiveShare();

  // Null: out of memory, or more than the peer may use.
  std::byte* take(std::size_t size);
  void give_back(std::byte* memory, std::size_t size);

  // Memory from elsewhere that grows with what the peer sends. False: more than the peer may use.
  [[nodiscard]] bool charge(std::size_t bytes);
  void discharge(std::size_t bytes);

  [[nodiscard]] std::size_t in_use() const { return in_use_; }
  // The reason why take() or charge() refused so many bytes: it breaks the connection.
  [[nodiscard]] Status refusal(std::size_t bytes) const;

 private:
  friend class ReceiveBuffers;

  [[nodiscard]] std::size_t beyond(std::size_t use) const { return use - std::min(use, buffers_.assured_); }
  [[nodiscard]] bool may_use(std::size_t more) const;
  void set_use(std::size_t use);

  ReceiveBuffers& buffers_;
  std::size_t in_use_ = 0;
};

}  // namespace seto::tcp
