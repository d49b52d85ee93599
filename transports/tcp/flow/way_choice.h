#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto::tcp {

// Over which of its two ways a link sends long payloads: over rails, or over the sockets beside them (decision 40). The sender
// decides alone, from how fast the peer acknowledged what went over each way: samples of real traffic, by turns. A link begins
// with rails, changes only where the other way is clearly faster, and tries again now and then. Pure: its caller reads the clock.
class WayChoice final {
 public:
  enum class Way : std::uint8_t { rails, sockets };

  // Bytes of long payloads that are acknowledged in a sample. A receiver tells what it has heard after 1 MiB.
  static constexpr std::uint64_t kSample = std::uint64_t{2} << 20;
  // Samples of each way in a trial. The best one counts: whatever else a host does only slows samples down.
  static constexpr std::size_t kSamples = 3;
  // The other way has to be faster by this factor.
  static constexpr double kGain = 1.3;
  // A sample that takes longer than the best one of the other way by this factor ends early: it costs time, and is slower anyway.
  static constexpr double kMuchSlower = 4;
  // The next trial comes after this time, and after twice as long each time that nothing changed.
  static constexpr std::uint64_t kFirstPauseNs = 30'000'000'000;
  static constexpr std::uint64_t kLongestPauseNs = 600'000'000'000;
  // A rail that comes or goes begins a trial, but not sooner after the last one than this.
  static constexpr std::uint64_t kLeastPauseNs = 1'000'000'000;

  // Before each pass that sends: so many rails carry data (0: none), and whether a socket does. A trial goes on while both are
  // the same.
  void look(std::size_t rails, bool sockets, std::uint64_t now_ns);

  // The next long payload goes over this way, if it works.
  [[nodiscard]] Way next() const { return both_ ? next_ : Way::rails; }
  // Long payloads are, or may be, on their way over sockets although there are rails.
  [[nodiscard]] bool uses_sockets() const { return both_ && (next_ == Way::sockets || heard_ < last_over_sockets_); }

  // A frame with a long payload has been given to a way, for the first time: its number, which grows.
  void sent(Way way, std::uint64_t number, std::uint64_t bytes, std::uint64_t now_ns);
  // The peer has all frames up to that one. True: a trial has ended with a result.
  bool acknowledged(std::uint64_t all_up_to, std::uint64_t now_ns);

  [[nodiscard]] Way chosen() const { return chosen_; }
  [[nodiscard]] bool is_trying() const { return trying_; }
  // Bytes a second in the last trial that had a result; 0: unknown.
  [[nodiscard]] double rate(Way way) const { return rates_[index_of(way)]; }

 private:
  // Long payloads of a trial that are not acknowledged. Full: the trial ends without a result.
  static constexpr std::size_t kMostUnderWay = 4'096;
  struct Sent {
    std::uint64_t number = 0;
    std::uint32_t bytes = 0;
  };
  [[nodiscard]] static constexpr std::size_t index_of(Way way) { return static_cast<std::size_t>(way); }
  [[nodiscard]] static constexpr Way other(Way way) { return way == Way::rails ? Way::sockets : Way::rails; }

  void begin_trial();
  void begin_sample();
  void end_sample(std::uint64_t now_ns);
  void give_up_slow_sample(std::uint64_t now_ns);
  void end_trial(std::uint64_t now_ns);
  void drop_trial();
  [[nodiscard]] std::uint64_t sampled_ns(std::uint64_t now_ns) const {
    return counted_ns_ + (since_ns_ == 0 ? 0 : now_ns - since_ns_);
  }

  std::size_t rails_ = 0;
  bool both_ = false;
  Way chosen_ = Way::rails;
  Way next_ = Way::rails;
  std::array<double, 2> rates_{};  // by way
  std::uint64_t heard_ = 0;        // all frames up to this one
  std::uint64_t last_ = 0;         // the number of the last long payload
  std::uint64_t last_over_sockets_ = 0;
  std::uint64_t pause_ns_ = kFirstPauseNs;
  std::uint64_t next_ns_ = 0;   // the next trial, not before that
  std::uint64_t ended_ns_ = 0;  // when the last trial ended; 0: there was none
  // The following are of a trial.
  bool trying_ = false;
  bool has_result_ = false;  // not yet reported
  std::size_t samples_ = 0;  // that have ended, of both ways
  std::array<double, 2> best_{};
  std::vector<Sent> under_way_;  // a ring
  std::size_t oldest_ = 0, count_ = 0;
  // The following are of a sample. Its clock runs while payloads of it are under way, and none of those before.
  std::uint64_t before_ = 0;  // the last long payload before it
  std::uint64_t bytes_ = 0;   // acknowledged while the clock ran
  std::uint64_t counted_ns_ = 0;
  std::uint64_t since_ns_ = 0;  // since when the clock runs; 0: it stands
};

}  // namespace seto::tcp
