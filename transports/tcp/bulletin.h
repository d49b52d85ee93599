#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "transports/transport.h"

namespace seto::tcp {

// What a member says of itself, whatever its engine is doing: what it works on, how far it is, how it left. Members that share
// memory read each other's; between machines each keeps a copy of every other's, which a Herald renews. One writer at a time, any
// number of readers; only the words take a lock.
class Bulletin final {
 public:
  // As it travels: so much, and the words.
  static constexpr std::size_t kFixedSize = (3 + kNotesKept * 8) * sizeof(std::uint64_t);

  void write(const Note& note);
  void complete(std::uint64_t operation) { completed_.store(operation, std::memory_order_release); }
  // The first reason stays, and the first words.
  void explain(std::string_view why);
  void leave(Fate fate);

  bool note_of(std::uint64_t operation, Note& note) const;
  [[nodiscard]] std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  [[nodiscard]] Fate fate() const;
  [[nodiscard]] std::string words() const;

  // Little-endian.
  [[nodiscard]] std::string encoded() const;
  // Of a copy: takes over what came. Counters only grow, a fate stays; what would go back is passed over. Fails for what is none.
  Status renew(std::string_view encoded);

 private:
  struct Slot {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> operation{0};
    std::atomic<std::uint64_t> digest_and_verdict{0};
    std::array<std::atomic<std::uint64_t>, 5> words{};
  };

  std::array<Slot, kNotesKept> notes_;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> fate_{0};  // reason, then culprit: one word, so that a reader has both or neither
  mutable std::mutex mutex_;            // of the words alone, which nobody reads in a hurry
  std::string words_;
};

// Brings bulletins between members, on a plane that does not wait for engines. Neither call blocks; both from any thread.
class Herald {
 public:
  virtual ~Herald() = default;
  // Soon, the copy of that member's bulletin is as new as what it says now. Asked often, it asks the member seldom.
  virtual void ask(std::uint32_t member) = 0;
  // All members hear what the own bulletin says now.
  virtual void announce() = 0;
};

}  // namespace seto::tcp
