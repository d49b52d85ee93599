#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto {

// The connections that are not authenticated yet, by number, in the order of their arrival. One thread.
class PendingConnections final {
 public:
  struct Limits {
    std::size_t limit;  // connections served at one time
    int turn_ms;        // after this time a connection is closed if others wait
    int stay_ms;        // after this time a connection is closed in any case
  };
  explicit PendingConnections(const Limits& limits) : limits_(limits) {}

  void add(std::uint64_t id);
  void remove(std::uint64_t id);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool full() const { return entries_.size() >= limits_.limit; }
  [[nodiscard]] std::uint64_t oldest() const { return entries_.front().id; }
  // There is room, or the oldest connection has had its turn.
  [[nodiscard]] bool accepts() const;
  [[nodiscard]] std::vector<std::uint64_t> expired() const;
  // The time until accepts() or expired() may change.
  [[nodiscard]] int remaining_ms() const;

 private:
  struct Entry {
    std::uint64_t id;
    std::uint64_t since_ns;
  };
  [[nodiscard]] static int age_ms(const Entry& one);

  Limits limits_;
  std::vector<Entry> entries_;
};

}  // namespace seto
