#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/software_gpu/causality.h"
#include "tests/software_gpu/shadow_memory.h"
#include "tests/software_gpu/write_sources.h"

namespace seto::software_gpu {

// The part of the race check that belongs to a block: its barriers, and its shared memory.
struct BlockOrder {
  std::uint32_t number = 0;
  std::uint32_t phase = 0;  // barriers of all threads so far
  std::uint32_t gpu = 0;
  std::shared_ptr<const Clocks> launch_past;  // what happened before the launch
  ShadowMemory shared_accesses{};
  WriteSources shared_sources{};
};

// The place of a thread in the causality order: what happens before its next access, which of that it has released, and which
// releases it has read without an acquire so far.
class ThreadOrder final {
 public:
  ThreadOrder(const BlockOrder& of_block, std::uint32_t thread) : block(of_block), past(of_block.launch_past), thread_(thread) {}

  [[nodiscard]] Moment now() const { return {block.number, block.phase, clock_, thread_}; }
  [[nodiscard]] bool knows(const Moment& moment) const {
    const bool is_own = moment.block == block.number && (moment.thread == thread_ || moment.phase < block.phase);
    return is_own || past->knows(moment);
  }
  [[nodiscard]] bool can_see(Scope scope, const Moment& other, std::uint32_t other_gpu) const {
    return includes(scope, other_gpu == block.gpu, other.block == block.number);
  }

  // A release of all that happens before now; later events are not part of it.
  Release release(Scope scope);
  void release_by_fence(Scope scope);
  void acquire_by_fence(Scope scope);
  // Adds the releases of earlier fences and of earlier release operations on this place to a strong write, and remembers its own.
  void sign(StrongWrite& write, std::uint64_t place, const Release* own);
  // Whether the thread has made the same strong read in the same moment, so that it learns nothing.
  bool has_observed(std::uint64_t place, const WriteRef& write, Scope scope) const;
  // A strong read has returned the value of a write.
  void observe(std::uint64_t place, const WriteRef& write, Scope scope, bool is_load);
  // An acquire takes the releases that it and earlier strong reads of the place have seen.
  void acquire_at(std::uint64_t place, Scope scope);
  // The releases that were read without an acquire, for reports.
  [[nodiscard]] const std::vector<Release>& not_acquired() const { return observed_; }

  const BlockOrder& block;
  std::shared_ptr<const Clocks> past;

 private:
  struct Seen {
    std::uint64_t place = 0;
    WriteRef write;  // of the last load
    Scope scope = Scope::system;
    Moment at{};
    std::vector<Release> releases;  // those without an acquire
  };

  static void keep_youngest(std::vector<Release>& releases, const Release& release);
  static void keep_widest(std::vector<Release>& releases, const Release& release);
  void join(const std::vector<Release>& releases, Scope scope);

  std::uint32_t thread_;
  std::uint32_t clock_ = 1;
  std::vector<Release> fences_;                                  // the last of each scope that a later wider one does not include
  std::unordered_map<std::uint64_t, std::vector<Release>> own_;  // by release operations, of each place
  std::vector<Release> observed_;                                // the last one of each thread and scope
  std::array<Seen, 4> seen_{};                                   // the last strong reads
  std::size_t next_seen_ = 0;
};

// Threads that meet: each of `leaving` knows all that happened before the arrivals.
void join_arrivals(const std::vector<Release>& arrivals, const std::vector<ThreadOrder*>& leaving);
// All threads of a block meet, which begins a new phase: what they did before needs no entries any more.
void join_block(BlockOrder& block, const std::vector<Release>& arrivals, const std::vector<ThreadOrder*>& leaving);

}  // namespace seto::software_gpu
