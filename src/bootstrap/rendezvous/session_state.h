#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/types.h"
#include "src/bootstrap/rendezvous/frames.h"

namespace seto {

// Who has come and what they said: the rendezvous of one communicator without its sockets. One thread.
// Whatever goes wrong with a member breaks the room for all; what a stranger does wrong is told to the stranger only.
class RendezvousRoom final {
 public:
  // `idle_until`: when a room that is not yet full breaks, unless a member has an earlier deadline.
  explicit RendezvousRoom(Deadline idle_until) : until_(idle_until) {}

  // Ok: the rank is a member. Otherwise the reason for this newcomer; broken() tells whether it is everybody's.
  [[nodiscard]] Status admit(const Hello& hello);
  void contribute(Rank rank, const Contribution& contribution);
  void leave(Rank rank);
  // `hint`: what may be why somebody has not come; empty: nothing.
  void look_at_deadline(const std::string& hint = {});
  void break_with(Status reason);

  // What every member is to hear: that all are there, the messages of a round, or a failure.
  struct Announcement {
    FrameKind kind{};
    std::vector<std::string> messages;  // of a result
  };
  [[nodiscard]] std::optional<Announcement> take_announcement();

  [[nodiscard]] const Status& broken() const { return broken_; }
  [[nodiscard]] bool full() const { return size_ > 0 && come_count_ == size_; }
  [[nodiscard]] int size() const { return size_; }
  // All have come and gone again: nobody can need the room any more.
  [[nodiscard]] bool served() const { return full() && left_count_ == size_; }
  // It broke because ranks were started wrongly, and some have not come to hear it.
  [[nodiscard]] bool awaits_latecomers() const { return broken_.code() == Code::invalid_argument && callers_ < size_; }
  // INT_MAX while nothing is being waited for.
  [[nodiscard]] int remaining_ms() const;

 private:
  [[nodiscard]] bool waiting() const { return broken_.ok() && (!full() || contributed_count_ > 0); }
  [[nodiscard]] Status check(const Hello& hello) const;
  void sooner(std::uint64_t remaining_ms);
  [[nodiscard]] std::vector<Rank> absent(const std::vector<bool>& present) const;
  void finish_round();

  Deadline until_;
  int size_ = 0;         // as the first member said
  Rank first_rank_ = 0;  // who said it
  int come_count_ = 0;
  int callers_ = 0;  // those that were turned away among them
  int left_count_ = 0;
  int contributed_count_ = 0;
  std::vector<bool> come_;
  std::vector<bool> left_;
  std::vector<bool> contributed_;
  std::vector<std::string> messages_;
  std::size_t round_size_ = 0;
  std::optional<Announcement> announcement_;
  Status broken_;
};

}  // namespace seto
