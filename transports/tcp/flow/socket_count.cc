#include "transports/tcp/flow/socket_count.h"

#include <algorithm>
#include <utility>

namespace seto::tcp {

bool SocketCount::take(const Look& look) {
  const std::pair before(used_, wanted_);
  if (next_ns_ == 0) next_ns_ = look.now_ns + pause_ns_;
  const std::uint64_t latest_ns = std::exchange(looked_ns_, look.now_ns);
  if (latest_ns != 0 && look.now_ns - latest_ns > kIdleNs) end_where_idle(look.now_ns);
  if (phase_ == Phase::opening) {
    if (look.open >= wanted_) {
      use(wanted_);
      go_on(Phase::during);
    } else if (look.now_ns - opening_ns_ > kOpenNs) {
      end_trial(false, look.now_ns);
    }
  }
  if (phase_ != Phase::opening && has_more(look)) measured(look.now_ns);
  return before != std::pair(used_, wanted_);
}

// True: the measurement of this phase is complete.
bool SocketCount::has_more(const Look& look) {
  run_ = look.waited && look.passed_ns != 0 ? run_ + 1 : 0;
  if (run_ <= kLooksToBegin) return false;
  if (counted_ns_ != 0 && look.now_ns - counted_ns_ > kIdleNs) end_where_idle(look.now_ns);
  counted_ns_ = look.now_ns;
  if (look.carrying != used_) {  // some of them are broken or stand still
    now_ = {};
    settle_ = kLooksToSettle;
  }
  if (settle_ > 0) {
    --settle_;
    return false;
  }
  now_.starved += look.starved ? 1 : 0;
  now_.rates[now_.looks++] = static_cast<double>(look.bytes) * 1e9 / static_cast<double>(look.passed_ns);
  return now_.looks == kLooks;
}

double SocketCount::rate() const {
  std::array<double, kLooks> sorted = now_.rates;
  const auto quartile = sorted.begin() + kLooks * 3 / 4;
  std::nth_element(sorted.begin(), quartile, sorted.end());
  return *quartile;
}

void SocketCount::measured(std::uint64_t now_ns) {
  const double rate = this->rate();
  if (phase_ == Phase::before) {
    before_ = rate;
    if (rate > best_ || now_ns - best_ns_ > kBestNs) {
      best_ = rate;
      best_ns_ = now_ns;
    }
    begin_trial(now_ns);
  } else if (phase_ == Phase::during) {
    during_ = rate;
    use(count_);
    go_on(Phase::after);
  } else {
    judge(now_ns);
  }
}

// Where sockets have become short, the trial need not wait.
void SocketCount::begin_trial(std::uint64_t now_ns) {
  step_ = std::exchange(now_, {}).starved >= kStarvedLooks ? Step::up : Step::down;
  const bool waits = step_ == Step::down || up_failed_;
  if (waits && now_ns < next_ns_) return;
  if (step_ == Step::up ? count_ >= most_ : count_ <= kLeast) return;
  if (step_ == Step::down) {
    use(count_ - 1);
    return go_on(Phase::during);
  }
  wanted_ = count_ + 1;
  opening_ns_ = now_ns;
  go_on(Phase::opening);
}

// The rate of the link may have changed meanwhile: so it is measured without the change once more.
void SocketCount::judge(std::uint64_t now_ns) {
  const double after = rate();
  if (step_ == Step::up) return end_trial(during_ >= kGain * std::max(before_, after), now_ns);
  end_trial(kGain * during_ >= std::max({before_, after, best_}), now_ns);
}

void SocketCount::end_trial(bool good, std::uint64_t now_ns) {
  if (good) count_ = step_ == Step::up ? count_ + 1 : count_ - 1;
  pause_ns_ = good ? kFirstPauseNs : std::min(2 * pause_ns_, kLongestPauseNs);
  up_failed_ = !good && step_ == Step::up;
  next_ns_ = now_ns + pause_ns_;
  return_to_count();
}

// Rates that were measured before may be of another time.
void SocketCount::end_where_idle(std::uint64_t now_ns) {
  if (phase_ != Phase::before) next_ns_ = now_ns + pause_ns_;
  return_to_count();
}

void SocketCount::return_to_count() {
  use(count_);
  wanted_ = count_;
  go_on(Phase::before);
}

void SocketCount::use(std::size_t count) {
  if (std::exchange(used_, count) != count) settle_ = kLooksToSettle;
}

void SocketCount::go_on(Phase phase) {
  phase_ = phase;
  now_ = {};
}

}  // namespace seto::tcp
