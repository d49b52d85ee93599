#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace seto::tcp {

// How many sockets of a far link carry frames. What one more socket gives, or one less costs, is found out by trying: the rate
// with it between two measurements without it (decision 22). One more is tried where sockets are what is short: else it would
// only take from others that use the network. Pure: its caller looks once a round trip, while output is under way.
class SocketCount final {
 public:
  static constexpr std::size_t kLeast = 2;
  // One more has to give so much; one less may cost as little.
  static constexpr double kGain = 1.05;
  // A look counts if frames waited all the time since the last one, and the two before it did, too: what arrives in the first
  // looks of a run was sent a round trip before.
  static constexpr std::uint32_t kLooksToBegin = 2;
  // A measurement has so many, and is their upper quartile: at the beginning of a call a link often carries half of what it
  // carries later.
  static constexpr std::uint32_t kLooks = 32;
  static constexpr std::uint32_t kLooksToSettle = 8;  // after each change; a new socket begins with a small window, too
  // A network without a queue, and no limit of this end: the sockets themselves are what is short. So many looks of a measurement
  // must say so.
  static constexpr std::uint32_t kStarvedLooks = 24;
  static constexpr std::uint64_t kFirstPauseNs = 10'000'000'000;
  static constexpr std::uint64_t kLongestPauseNs = 640'000'000'000;
  // A socket that cannot be opened within this time is not tried for now.
  static constexpr std::uint64_t kOpenNs = 10'000'000'000;
  // A trial ends without a result where no look counted for so long.
  static constexpr std::uint64_t kIdleNs = 10'000'000'000;
  // The best rate of this time counts when one less is judged: else each of several steps down might cost as little.
  static constexpr std::uint64_t kBestNs = 600'000'000'000;

  struct Look {
    std::uint64_t bytes = 0;      // that the peer has received since the last look
    std::uint64_t passed_ns = 0;  // since the last look; 0: unknown
    bool waited = false;          // frames waited all the time
    bool starved = false;         // and there was no queue in the network, nor a limit of this end
    std::size_t open = 0;         // sockets that are open
    std::size_t carrying = 0;     // of them: those that take frames
    std::uint64_t now_ns = 0;
  };

  SocketCount(std::size_t first, std::size_t most) : count_(first), most_(most) {}

  // True: used() or wanted() has changed.
  bool take(const Look& look);

  // Sockets that carry frames, and those that should be open.
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t wanted() const { return wanted_; }

 private:
  enum class Phase : std::uint8_t { before, opening, during, after };
  enum class Step : std::uint8_t { up, down };

  struct Measurement {
    std::array<double, kLooks> rates{};  // bytes per second
    std::uint32_t looks = 0;
    std::uint32_t starved = 0;
  };

  [[nodiscard]] double rate() const;
  [[nodiscard]] bool has_more(const Look& look);
  void measured(std::uint64_t now_ns);
  void begin_trial(std::uint64_t now_ns);
  void judge(std::uint64_t now_ns);
  void end_trial(bool good, std::uint64_t now_ns);
  void end_where_idle(std::uint64_t now_ns);
  void return_to_count();
  void use(std::size_t count);
  void go_on(Phase phase);

  std::size_t count_;  // outside of a trial
  std::size_t most_;
  std::size_t used_ = count_;
  std::size_t wanted_ = count_;
  Phase phase_ = Phase::before;
  Step step_ = Step::up;      // of the trial
  bool up_failed_ = false;    // the last trial was one more, and it gave too little
  std::uint32_t run_ = 0;     // looks one after another at which frames waited
  std::uint32_t settle_ = 0;  // looks that are left
  Measurement now_{};         // of this phase
  double before_ = 0;         // bytes per second
  double during_ = 0;
  double best_ = 0;
  std::uint64_t best_ns_ = 0;
  std::uint64_t opening_ns_ = 0;  // since when a socket is opened
  std::uint64_t looked_ns_ = 0;   // when a look was last taken
  std::uint64_t counted_ns_ = 0;  // when one last counted
  std::uint64_t pause_ns_ = kFirstPauseNs;
  std::uint64_t next_ns_ = 0;  // the next trial; 0: not set yet
};

}  // namespace seto::tcp
