#pragma once

#include <cstddef>
#include <cstdint>

namespace seto::tcp {

// The memory of a context that its far peers may fill with data that no call has taken yet. Every window that a receiver grants
// is reserved here. Without a window a sender may use the first 4 MiB of an operation, or 64 messages of it; ReceiveBuffers
// bounds what all peers of a context use together. The domain's lock covers it.
class WindowBudget final {
 public:
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  void add_far_link() { ++far_links_; }
  void remove_far_link() { --far_links_; }

  // The part of the limit that one far peer may have.
  [[nodiscard]] std::uint64_t share() const { return limit_ / (far_links_ == 0 ? 1 : far_links_); }
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  // For a peer that has reserved `before` already. Returns the granted bytes: fewer than wanted where its share or the limit
  // binds.
  std::uint64_t reserve(std::uint64_t wanted, std::uint64_t before) {
    const std::uint64_t of_share = share() - (before < share() ? before : share());
    const std::uint64_t of_limit = limit_ - (reserved_ < limit_ ? reserved_ : limit_);
    const std::uint64_t free = of_share < of_limit ? of_share : of_limit;
    const std::uint64_t granted = wanted < free ? wanted : free;
    reserved_ += granted;
    return granted;
  }
  void give_back(std::uint64_t bytes) { reserved_ -= bytes; }

  // True once: the limit binds, and a person should be told.
  bool tell_once() {
    const bool first = !told_;
    told_ = true;
    return first;
  }

 private:
  std::uint64_t limit_ = std::uint64_t{256} << 20;
  std::uint64_t far_links_ = 0;
  std::uint64_t reserved_ = 0;
  bool told_ = false;
};

}  // namespace seto::tcp
