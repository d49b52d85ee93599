#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/types.h"
#include "src/bootstrap/rendezvous/frames.h"

namespace seto {

// The state of one session, without its sockets: which ranks have joined, and their messages. An error of a member fails the
// session for all ranks; an error of an unauthenticated connection affects that connection only. One thread.
class SessionState final {
 public:
  // How long the members wait before the missing ranks are logged. Ranks of one job start within this time.
  static constexpr std::uint64_t kLateMs = 10'000;

  // A session that is not full fails at `idle_until`, unless a member has an earlier deadline.
  explicit SessionState(Deadline idle_until, std::uint64_t late_ms = kLateMs) : until_(idle_until), late_ms_(late_ms) {}

  // Ok if the rank is a member now. Otherwise the reason for this connection; broken() tells whether all ranks fail with it.
  [[nodiscard]] Status admit(const Hello& hello);
  void contribute(Rank rank, const Contribution& contribution);
  void leave(Rank rank);
  // `hint` is a possible reason for a missing rank; it may be empty.
  void look_at_deadline(const std::string& hint = {});
  void break_with(Status reason);
  // A warning that names the missing ranks, once: members have waited for `late_ms`, and the session is not full.
  [[nodiscard]] std::optional<std::string> take_late_warning();

  // A frame for every member: all ranks have joined, the messages of a round, or a failure.
  struct Announcement {
    FrameKind kind{};
    std::vector<std::string> messages;  // the messages of a result
  };
  [[nodiscard]] std::optional<Announcement> take_announcement();

  [[nodiscard]] const Status& broken() const { return broken_; }
  [[nodiscard]] bool full() const { return size_ > 0 && joined_count_ == size_; }
  [[nodiscard]] int size() const { return size_; }
  // All ranks have joined and left, so no rank needs the session any more.
  [[nodiscard]] bool served() const { return full() && left_count_ == size_; }
  // The session failed because ranks were started wrongly, and some ranks have not received the reason yet.
  [[nodiscard]] bool awaits_late_ranks() const { return broken_.code() == Code::invalid_argument && hello_count_ < size_; }
  // The time until the deadline or the warning; INT_MAX if the session waits for nothing.
  [[nodiscard]] int remaining_ms() const;

 private:
  [[nodiscard]] bool waiting() const { return broken_.ok() && (!full() || contributed_count_ > 0); }
  [[nodiscard]] Status check(const Hello& hello) const;
  void sooner(std::uint64_t remaining_ms);
  [[nodiscard]] std::vector<Rank> absent(const std::vector<bool>& present) const;
  void finish_round();

  [[nodiscard]] std::uint64_t waited_ms() const { return (monotonic_ns() - waits_since_ns_) / 1'000'000; }

  Deadline until_;
  std::uint64_t late_ms_;
  Deadline late_at_ = Deadline::never();  // valid from the first member to the warning
  std::uint64_t waits_since_ns_ = 0;      // of the first member, or of the first message of the round
  int size_ = 0;                          // as the first member stated it
  Rank first_rank_ = 0;                   // the first member
  int joined_count_ = 0;
  int hello_count_ = 0;  // includes rejected ones
  int left_count_ = 0;
  int contributed_count_ = 0;
  std::vector<bool> joined_;
  std::vector<bool> left_;
  std::vector<bool> contributed_;
  std::vector<std::string> messages_;
  std::size_t round_size_ = 0;
  std::optional<Announcement> announcement_;
  Status broken_;
};

}  // namespace seto
