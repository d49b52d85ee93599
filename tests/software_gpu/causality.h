#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/software_gpu/instruction.h"

namespace seto::software_gpu {

// The time of an event of a thread, as far as other threads can know it.
struct Moment {
  std::uint32_t block = 0;  // a number that is unique in the machine
  std::uint32_t phase = 0;  // barriers of the whole block before it
  std::uint32_t clock = 0;  // releases and barriers of the thread before it
  std::uint32_t thread = 0;

  [[nodiscard]] bool is_same_thread(const Moment& other) const { return block == other.block && thread == other.thread; }
};

// The events that happen before the next one of a thread, except for those of the thread itself: a vector clock. Blocks that
// nothing is known of take no place, and a barrier of a whole block makes one entry of all entries of its threads.
class Clocks final {
 public:
  explicit Clocks(std::uint64_t ended = 0) : ended_(ended) {}

  // The kernels that have ended and are known: those up to this one, in the order of their ends.
  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  [[nodiscard]] bool knows(const Moment& moment) const;
  void add(std::span<const Moment> moments);
  void join(const Clocks& other);
  [[nodiscard]] bool has_entries_of(std::uint32_t block) const;
  void drop_entries_of(std::uint32_t block);

 private:
  void merge(const std::vector<Moment>& other);

  std::uint64_t ended_;
  // Ordered by block and thread. Those of a block have the same phase: all events of the block before that phase are known, too.
  std::vector<Moment> moments_;
};

// A release, release fence or arrival at a barrier: what happens before it, and the threads to which its scope extends.
struct Release {
  Moment at{};
  std::uint32_t gpu = 0;
  Scope scope = Scope::system;
  std::shared_ptr<const Clocks> past;
};

// Whether the scope of an operation at one place includes threads at another.
[[nodiscard]] constexpr bool includes(Scope scope, bool same_gpu, bool same_block) {
  return scope == Scope::system || (scope == Scope::gpu && same_gpu) || same_block;
}

// A strong store or atomic. It travels with its value through the memory, so that the thread that reads the value learns whose it
// is and which releases it carries.
struct StrongWrite {
  std::uint64_t number = 0;  // later ones have higher numbers
  Moment by{};
  std::uint32_t gpu = 0;
  Scope scope = Scope::system;
  std::vector<Release> releases;  // of the thread, and of those whose value an atomic has replaced
};

using WriteRef = std::shared_ptr<const StrongWrite>;  // null: a weak store, or none of a kernel

}  // namespace seto::software_gpu
