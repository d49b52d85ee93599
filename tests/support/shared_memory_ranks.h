#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"

namespace seto::testing {

// Zeros that the processes forked later share.
template <class T>
class Shared final {
 public:
  Shared() : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
    value_ = new (memory_) T;
  }
  ~Shared() { munmap(memory_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  void* memory_;
  T* value_;
};

// True once the condition holds; false after 30 s.
bool eventually(const std::function<bool()>& condition);

// Where ranks of one machine gather, in memory that they share. One communicator after another.
struct Room {
  static constexpr std::size_t kMostRanks = 8;
  static constexpr std::size_t kMostBytes = 16 << 10;
  struct Place {
    std::atomic<std::uint64_t> steps{0};  // two for each gather: it has written, it has read
    std::size_t size = 0;
    std::array<char, kMostBytes> bytes{};
  };
  std::array<Place, kMostRanks> places;
};

// A test may hold a rank in its gathers, to bring about one order of events among many.
struct Holds {
  std::function<void(int gather)> before{};  // counted from 1; its message is said after it
  std::function<void(int gather)> after{};   // it knows what all said
};

class RoomBootstrap final : public Bootstrap {
 public:
  struct Seat {
    Rank rank = 0;
    int size = 1;
  };
  RoomBootstrap(Room& room, Seat seat, Holds holds = {}) : room_(room), seat_(seat), holds_(std::move(holds)) {}

  [[nodiscard]] Rank rank() const override { return seat_.rank; }
  [[nodiscard]] int size() const override { return seat_.size; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;

 private:
  Status step(Deadline until);

  Room& room_;
  Seat seat_;
  Holds holds_;
  int gathers_ = 0;
};

}  // namespace seto::testing
