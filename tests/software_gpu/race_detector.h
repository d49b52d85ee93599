#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace seto::software_gpu {

// Finds accesses of a block's shared memory that conflict and that nothing orders: no barrier, no warp synchronisation, no
// release and acquire. It works with vector clocks, so it finds a missing barrier although the schedule of this run was a lucky
// one. Two strong accesses (atomics, relaxed, volatile) do not conflict. A shuffle orders nothing.
class RaceDetector final {
 public:
  RaceDetector(bool enabled, std::uint32_t threads, std::uint64_t shared_bytes);

  struct Access {
    std::uint32_t thread = 0;
    bool writes = false;
    bool strong = false;
    std::uint32_t line = 0;
  };
  // Throws a Fault of kind `race` that names both places.
  void access(const Access& access, std::uint64_t address, std::uint32_t bytes);

  void synchronise_all();
  void synchronise(std::span<const std::uint32_t> threads);
  // A release, and the strong store that publishes it; a strong load, and the acquire that makes use of it.
  void release(std::uint32_t thread);
  void publish(std::uint32_t thread, std::uint64_t address);
  void observe(std::uint32_t thread, std::uint64_t address);
  void acquire(std::uint32_t thread);

 private:
  using Clocks = std::vector<std::uint32_t>;  // by thread; empty: nothing but the own first clock is known

  struct Recorded {
    Access access;
    std::uint32_t clock = 0;
    std::uint8_t mask = 0;  // of the bytes of the word
  };
  struct Word {
    std::uint32_t epoch = 0;
    std::vector<Recorded> accesses;
  };

  void access_word(const Access& access, std::size_t word, std::uint8_t mask);
  [[nodiscard]] bool happens_before(const Recorded& earlier, std::uint32_t thread) const;
  [[nodiscard]] std::uint32_t own_clock(std::uint32_t thread) const;
  Clocks& clocks_of(std::uint32_t thread);
  static void join(Clocks& into, const Clocks& from);

  bool enabled_;
  std::uint32_t epoch_ = 1;  // barriers of the whole block so far; they order everything, and make all clocks start again
  std::vector<Word> words_;
  std::vector<Clocks> clocks_, released_, observed_;
  std::unordered_map<std::uint64_t, Clocks> published_;
};

}  // namespace seto::software_gpu
