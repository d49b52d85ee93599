#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "transports/peer_status.h"

namespace seto {

// The status of one member as a value that can be sent: its notes, the number of operations it has completed, how it left. Each
// member keeps its own record and a copy of every other member's record. One writer at a time, any number of readers; only the
// explanation takes a lock.
class StatusRecord final {
 public:
  // Encoded form: this many bytes, then the explanation.
  static constexpr std::size_t kFixedSize = (3 + kNotesKept * 8) * sizeof(std::uint64_t);

  void write(const Note& note);
  void complete(std::uint64_t operation) { completed_.store(operation, std::memory_order_release); }
  // The first explanation and the first reason are kept.
  void explain(std::string_view why);
  void leave(Fate fate);

  bool note_of(std::uint64_t operation, Note& note) const;
  [[nodiscard]] std::uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  [[nodiscard]] Fate fate() const;
  [[nodiscard]] std::string explanation() const;

  // Little-endian.
  [[nodiscard]] std::string encoded() const;
  // Updates a copy from an encoded record. Counters only grow and a fate is kept: older values are ignored. Fails on malformed
  // input.
  Status renew(std::string_view encoded);
  // How many renewals brought anything new.
  [[nodiscard]] std::uint64_t renewals() const { return renewals_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> operation{0};
    std::atomic<std::uint64_t> digest_and_verdict{0};
    std::array<std::atomic<std::uint64_t>, 5> words{};
  };

  std::array<Slot, kNotesKept> notes_;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> fate_{0};  // reason and culprit in one word, so that a reader gets both or neither
  std::atomic<std::uint64_t> renewals_{0};
  mutable std::mutex mutex_;  // of the explanation, which is never read on the fast path
  std::string explanation_;
};

}  // namespace seto
