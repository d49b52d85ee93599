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

// Zeroed memory that processes forked later share.
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

// Polls until the condition holds. Returns false after 30 s.
bool eventually(const std::function<bool()>& condition);

// An all-gather of the ranks of one machine, in memory that they share. One communicator is made after another.
struct SharedMemoryRanks {
  static constexpr std::size_t kMostRanks = 8;
  static constexpr std::size_t kMostBytes = 16 << 10;
  struct Place {
    std::atomic<std::uint64_t> steps{0};  // two for each gather: after writing, after reading
    std::size_t size = 0;
    std::array<char, kMostBytes> bytes{};
  };
  std::array<Place, kMostRanks> places;
};

// Lets a test delay a rank in its gathers, to bring about a certain order of events.
struct Holds {
  std::function<void(int gather)> before{};  // called with the number of the gather, from 1, before the rank writes its message
  std::function<void(int gather)> after{};   // called after the rank has read all messages
};

class SharedMemoryBootstrap final : public Bootstrap {
 public:
  struct Seat {
    Rank rank = 0;
    int size = 1;
  };
  SharedMemoryBootstrap(SharedMemoryRanks& room, Seat seat, Holds holds = {})
      : room_(room), seat_(seat), holds_(std::move(holds)) {}

  [[nodiscard]] Rank rank() const override { return seat_.rank; }
  [[nodiscard]] int size() const override { return seat_.size; }
  [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string mine, Deadline until) override;

 private:
  Status step(Deadline until);

  SharedMemoryRanks& room_;
  Seat seat_;
  Holds holds_;
  int gathers_ = 0;
};

}  // namespace seto::testing
