#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace seto::tcp {

// How often a member that waits asks another one for its status record. All members of a communicator may wait for one, and may
// ask all the others meanwhile: an answer that brings nothing new doubles the pause before the next question, and so does
// silence. Any thread.
class AskPace final {
 public:
  // A waiting task looks at its peers thousands of times a second; a reply takes about 100 us on a fast network.
  static constexpr std::uint64_t kFirstPauseNs = 500'000;
  // A question or its answer may have been dropped, because too many bytes waited: then this member asks again.
  static constexpr std::uint64_t kFirstSilenceNs = 20'000'000;
  static constexpr std::uint32_t kMostDoublings = 8;
  static constexpr std::uint32_t kMostSilentDoublings = 4;

  // The longest pause where so many members may ask the same one: it answers at most 4,000 questions a second then, or 10 a
  // second of each.
  static std::uint64_t longest_pause_ns(std::size_t members) {
    return std::clamp<std::uint64_t>(members * 250'000, 2'000'000, 100'000'000);
  }

  // Whether to ask now. If so, it counts as asked. `done`: the operations that this member has completed; after a new one the
  // pauses are short again.
  bool asks(std::uint64_t now_ns, std::uint64_t done, std::uint64_t longest_ns) {
    std::uint64_t before = asked_.load(std::memory_order_relaxed);
    const bool again = done == done_.load(std::memory_order_relaxed);
    const bool answered = answered_.load(std::memory_order_relaxed);
    const std::uint32_t in_vain = again ? in_vain_.load(std::memory_order_relaxed) : 0;
    const std::uint32_t silent = again ? silent_.load(std::memory_order_relaxed) : 0;
    const std::uint64_t pause = answered ? std::min(kFirstPauseNs << in_vain, longest_ns) : kFirstSilenceNs << silent;
    if (now_ns - before < pause || !asked_.compare_exchange_strong(before, now_ns, std::memory_order_relaxed)) return false;
    if (!again) in_vain_.store(0, std::memory_order_relaxed);
    const bool was_silent = again && !answered && before != 0;
    silent_.store(was_silent ? std::min(silent + 1, kMostSilentDoublings) : 0, std::memory_order_relaxed);
    done_.store(done, std::memory_order_relaxed);
    answered_.store(false, std::memory_order_relaxed);
    return true;
  }

  void hear(bool news) {
    const std::uint32_t in_vain = in_vain_.load(std::memory_order_relaxed);
    in_vain_.store(news ? 0 : std::min(in_vain + 1, kMostDoublings), std::memory_order_relaxed);
    silent_.store(0, std::memory_order_relaxed);
    answered_.store(true, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint32_t> in_vain_{0};  // answers without news, one after the other
  std::atomic<std::uint32_t> silent_{0};   // questions without an answer, one after the other
  std::atomic<bool> answered_{false};      // since the last question
};

}  // namespace seto::tcp
