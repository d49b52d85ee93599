#pragma once

#include <cstdint>

#include "src/control/liveness/peer_liveness.h"

namespace seto {

// Judges the silence of a process by what its kernel does. That of a process that is frozen still acknowledges what is sent to
// it. Where nothing is acknowledged, the host is down or the network is broken: within a site that is taken for the loss of the
// process, but another site of which no process answers is cut off, and is waited for. Not thread safe.
class PeerSilence final {
 public:
  enum class Verdict : std::uint8_t {
    alive,
    lost,
    cut_off,   // with all of its site
    given_up,  // it was cut off for too long
  };
  struct Rules {
    std::uint64_t timeout_ns = 0;   // of a process
    std::uint64_t patience_ns = 0;  // with another site; 0: the process is at this one
    bool site_answers = false;      // another process of its site answers
  };

  explicit PeerSilence(const RunningTime& time) : received_(time), progress_(time), overdue_(time) {}

  void received(const RunningTime& time) { received_.update(time); }
  // The kernel of the peer has acknowledged so many bytes since the beginning. `waits`: it has not acknowledged all. What it
  // sends again itself carries acknowledgements too, but of nothing new. One is overdue after `late_ns` without progress.
  void acknowledged(const RunningTime& time, std::uint64_t bytes, bool waits, std::uint64_t late_ns) {
    const bool stands_still = waits && bytes == acknowledged_;
    acknowledged_ = bytes;
    if (!stands_still) progress_.update(time);
    const bool late = progress_.age_ns(time) > late_ns;
    if (late) overdue_.update(time);
    undecided_ = stands_still && !late;
  }
  // There is no connection to the process, so nothing is acknowledged.
  void unreachable(const RunningTime& time) {
    overdue_.update(time);
    undecided_ = false;
  }
  [[nodiscard]] std::uint64_t age_ns(const RunningTime& time) { return received_.age_ns(time); }

  // Once its kernel acknowledges again, a process has the timeout to answer, too. While an acknowledgement is missing that is not
  // overdue yet, nothing is known about the kernel, so the verdict waits: where the timeout is short, the first ping of a silence
  // is younger than that.
  [[nodiscard]] Verdict verdict(const RunningTime& time, const Rules& rules) {
    const std::uint64_t silent_ns = age_ns(time);
    if (silent_ns <= rules.timeout_ns) return Verdict::alive;
    if (rules.patience_ns == 0 || rules.site_answers) return Verdict::lost;
    if (overdue_.age_ns(time) > rules.timeout_ns) return undecided_ ? Verdict::alive : Verdict::lost;
    return silent_ns <= rules.patience_ns ? Verdict::cut_off : Verdict::given_up;
  }

 private:
  LastReceived received_;
  std::uint64_t acknowledged_ = 0;
  LastReceived progress_;
  LastReceived overdue_;
  bool undecided_ = false;
};

}  // namespace seto
