#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto {

// Connections that are not members yet, by number, in the order in which they came. One thread.
class Crowd final {
 public:
  struct Manners {
    std::size_t limit;  // that are heard at once
    int turn_ms;        // after which one makes room if others wait
    int stay_ms;        // after which one goes in any case
  };
  explicit Crowd(const Manners& manners) : manners_(manners) {}

  void add(std::uint64_t id);
  void remove(std::uint64_t id);

  [[nodiscard]] bool empty() const { return present_.empty(); }
  [[nodiscard]] bool full() const { return present_.size() >= manners_.limit; }
  [[nodiscard]] std::uint64_t oldest() const { return present_.front().id; }
  // There is room, or somebody has had his turn.
  [[nodiscard]] bool takes() const;
  [[nodiscard]] std::vector<std::uint64_t> overstayed() const;
  // Until one of these answers may change.
  [[nodiscard]] int remaining_ms() const;

 private:
  struct Present {
    std::uint64_t id;
    std::uint64_t since_ns;
  };
  [[nodiscard]] static int age_ms(const Present& one);

  Manners manners_;
  std::vector<Present> present_;
};

}  // namespace seto
