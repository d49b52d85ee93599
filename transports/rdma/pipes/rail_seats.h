#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace seto::rdma {

// The queue pairs of a context, divided among the links that have any: each link may have as many as the others, and one in any
// case. So up to 64 links have 64 queue pairs together, whatever comes first, and more links one each. 64 is twice as many as the
// peers that a call needs at most where a plan allows that (kMostPeers): with two ports, no such link has fewer rails. Pure.
class RailSeats final {
 public:
  using Link = const void*;  // any address that is the link's own
  static constexpr std::uint32_t kMost = 64;

  explicit RailSeats(std::uint32_t most = kMost) : most_(most), share_(std::max(most, 1U)) {}
  RailSeats(const RailSeats&) = delete;
  RailSeats& operator=(const RailSeats&) = delete;

  // One queue pair of a link, for as long as it may exist. The seats end before what they count.
  class Seat final {
   public:
    Seat(RailSeats& seats, Link link) : seats_(seats), link_(link) { seats_.add(link_); }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() { seats_.remove(link_); }
    [[nodiscard]] Link link() const { return link_; }

   private:
    RailSeats& seats_;
    const Link link_;
  };

  [[nodiscard]] std::uint32_t most() const { return most_; }
  // So many may a link have.
  [[nodiscard]] std::uint32_t share() const { return share_; }
  [[nodiscard]] std::uint32_t of(Link link) const {
    const auto found = by_link_.find(link);
    return found == by_link_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::size_t links() const { return by_link_.size(); }
  // Links have ended: the others may have more, but not before a quarter of them would find room again, because a link whose
  // rails break and are set up again would cost the others theirs. True: the share has changed.
  bool raise() {
    const std::uint32_t before = share_;
    share_ = std::max(share_, share_of(links() + links() / 4 + 1));
    return share_ != before;
  }

 private:
  [[nodiscard]] std::uint32_t share_of(std::size_t links) const {
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, most_ / std::max<std::size_t>(1, links)));
  }
  // The share falls at once.
  void add(Link link) {
    ++by_link_[link];
    share_ = std::min(share_, share_of(links()));
  }
  void remove(Link link) {
    const auto found = by_link_.find(link);
    if (--found->second == 0) by_link_.erase(found);
  }

  const std::uint32_t most_;
  std::uint32_t share_;
  std::map<Link, std::uint32_t> by_link_;
};

}  // namespace seto::rdma
