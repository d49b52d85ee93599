#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/control/network/tcp_connector.h"
#include "src/core/call/collective_call.h"
#include "src/core/communicator/snapshot.h"
#include "src/core/connect/context.h"
#include "src/core/launch/launch_cache.h"
#include "src/core/choice/planner.h"
#include "src/core/connect/deferred_cleanup.h"
#include "src/core/seeing.h"
#include "src/core/progress/task.h"
#include "src/core/launch/point_to_point.h"
#include "src/core/communicator/queued_tasks.h"
#include "transports/slots/slot_circle.h"
#include "transports/transport.h"

namespace seto {

class Bells;
class RemoteRanks;
class TimeLimit;
struct Joining;

struct CommunicatorOptions {
  Config config;
  std::shared_ptr<Context> context;  // null: a new one
  std::string name;
  const std::atomic<bool>* given_up = nullptr;  // once set, from any thread, create() ends soon; others hear of it
};

// One rank's end of a communicator. Calls come from one thread at a time; fail() and first_failure() from any.
class Communicator final {
 public:
  static Result<std::unique_ptr<Communicator>> create(Bootstrap& bootstrap, const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }
  [[nodiscard]] const Tiers& tiers() const { return tiers_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const CostModel& costs() const { return costs_; }
  [[nodiscard]] std::uint64_t calibration_ns() const { return calibration_ns_; }
  [[nodiscard]] double ranks_a_core() const { return crowding_; }
  // "tokyo-3:4711": host and process of a rank.
  [[nodiscard]] const std::string& place_of(Rank rank) const { return places_[static_cast<std::size_t>(rank)]; }
  // What the ranks know and nobody else; null: they are on one node, and their channel can be trusted.
  [[nodiscard]] const Secret* secret() const { return door_ == nullptr ? nullptr : &key_; }
  [[nodiscard]] int others_of_process() const;  // ranks that are threads of this one
  [[nodiscard]] int others_over_tcp() const;

  // A blocking collective.
  Status run(const Call& call);
  // The task of a collective that somebody else drives. Consumes an operation number, right call or wrong.
  std::unique_ptr<Task> issue(const Call& call, class TaskGate* gate);
  // The same for sends and receives, which have no operation number. A task with a gate counts as under way until it has ended.
  Status run(const TransferCall& call);
  std::unique_ptr<Task> issue(const TransferCall& call, class TaskGate* gate);
  // The same for a receive from whoever sends first.
  Status run(const ReceiveAnyCall& call);
  std::unique_ptr<Task> issue(const ReceiveAnyCall& call, class TaskGate* gate);
  // Drives until no task with a gate is under way: they end even after a failure. Those that a stream has not come to end then
  // where they stand, whatever stands before them. Gives the first failure. Local: what peers still read of this rank's stays
  // when it is gone.
  Status drain();
  // Which tasks those are. A stream that comes to a task with a gate has to claim it.
  [[nodiscard]] const std::shared_ptr<WaitingTasks>& waiting() const { return waiting_; }

  // The same, and waits until every operation issued here has ended everywhere. Other ranks need not call it.
  Status finalize();

  // The first reason stays until destruction, and is told to the others.
  void fail(const Status& reason, Rank culprit);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] Status first_failure() const;
  // Any thread, while no call is inside, for who asks how the communicator is: fails if one of the others is lost to it. What a
  // stream has begun looks for itself.
  void miss_the_lost();
  // Any thread, until destruction begins.
  [[nodiscard]] CommunicatorState state() const;
  [[nodiscard]] Seeing& seeing() { return seeing_; }
  [[nodiscard]] const Seeing& seeing() const { return seeing_; }
  [[nodiscard]] AttemptId attempt() const { return attempt_; }  // which making of a communicator it comes from

 private:
  friend class CollectiveTask;
  friend class DrainTask;
  friend class ReceiveAnyTask;
  friend class TransferTask;
  Communicator() = default;
  Status meet(Bootstrap& bootstrap, Deadline until);
  Status introduce(Joining& joining);
  Status exchange_doors(Bootstrap& bootstrap, Joining& joining, Deadline until);
  Status make_circle(Joining& joining, Deadline until);
  Status meet_neighbours(Joining& joining, Deadline until);
  Status connect_all(const Joining& joining, Deadline until);
  Result<std::unique_ptr<slots::SlotCircle>> make_near_circle(const Joining& joining, const std::vector<std::uint32_t>& node);
  Result<std::unique_ptr<RemoteRanks>> make_far_ranks(const Joining& joining);
  Result<std::shared_ptr<Connection>> connect(Rank peer, const Joining& joining, Deadline until);

  void await_turn(Task& task);
  BoundShape* prepared(const Call& call, Status& rejected);
  [[nodiscard]] PeerState state_of(Rank rank) const;
  void ask_calls() const;
  void put_records(CommunicatorState& state) const;
  std::uint64_t count_operation() {
    issued_.store(issued() + 1, std::memory_order_relaxed);
    return issued();
  }
  [[nodiscard]] std::uint64_t issued() const { return issued_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t begun() const { return begun_.load(std::memory_order_relaxed); }

  // On the token holder.
  [[nodiscard]] bool may_begin(std::uint64_t operation) const {
    return operation == begun() + 1 && operation <= done_.load(std::memory_order_relaxed) + circle_->window();
  }
  // Over a network what another rank calls is not seen at once: what it sent may fit no call of this one.
  // It has left in peace, or its process has ended; what it sent before may not all be here.
  [[nodiscard]] bool may_still_bring(Rank peer) const;
  [[nodiscard]] bool suspects() const { return door_ != nullptr && circle_->suspects(); }
  void begin(const Note& note);
  void begin_rejected(Note note, const Status& reason);
  void complete(std::uint64_t operation);
  Status look_around(const Note& own);
  Status heed(Rank peer, const Note& own);
  Status heed_earlier(std::uint64_t before);
  Status compare_notes(const Note& own);
  Status died(Rank peer, const Note& own) const;
  Status left(Rank peer, const Note& own) const;
  [[nodiscard]] Rank blamed_by(Rank peer) const;
  // Others are near enough to find what this rank notes of the operation. One that is gone is not waited for.
  [[nodiscard]] bool others_follow(std::uint64_t operation) const;
  // Everybody has seen that this rank rejected a call, or the note of it is not yet overwritten by that operation.
  [[nodiscard]] bool rejection_was_read(std::uint64_t before);
  [[nodiscard]] bool all_have_completed(std::uint64_t operation) const;  // who is gone does not count
  [[nodiscard]] std::string absentees(const Note& own) const;
  // How an operation stands that does not end. `where`: what this rank itself waits for.
  [[nodiscard]] std::string standing(const Note& own, const std::string& where) const;
  Status overdue(const Note& own, const TimeLimit& limit, const std::string& where);
  void warn_of(const Note& own, const std::string& where, double seconds) const;
  // Why that peer will send nothing more, if so: in its own words where it left some.
  Status why_gone(Rank peer) const;
  [[nodiscard]] bool said_why(Rank peer) const { return !circle_->explanation_of(static_cast<std::uint32_t>(peer)).empty(); }
  // For operations that a stream has not come to, so that none looks around: fails where a peer will never take part in the next.
  void miss_the_gone();
  void task_ended() { under_way_.fetch_sub(1, std::memory_order_release); }

  Rank rank_ = 0;
  int ranks_ = 1;
  std::string name_;
  Config config_;
  std::shared_ptr<Context> context_;
  AttemptId attempt_ = 0;
  Seeing seeing_;
  Board board_;
  std::vector<std::shared_ptr<Connection>> connections_;  // by rank; null: this rank
  std::vector<std::string> places_;                       // by rank: host and process
  FrontDoor* door_ = nullptr;                             // of the process; null: all ranks are on one node
  Secret key_;                                            // of the ranks that meet through doors
  Admission admission_;
  std::unique_ptr<Bells> bells_;
  std::unique_ptr<Circle> circle_;
  Tiers tiers_;
  CostModel costs_;
  std::uint64_t calibration_ns_ = 0;  // what agreeing on them took
  double crowding_ = 1;
  std::unique_ptr<LaunchCache> launches_;
  std::unique_ptr<Transfers> transfers_;
  std::atomic<std::uint32_t> under_way_{0};  // tasks with a gate
  const std::shared_ptr<WaitingTasks> waiting_ = std::make_shared<WaitingTasks>();

  Call last_call_;
  BoundShape* last_shape_ = nullptr;  // of last_call_
  // Written by one thread at a time; a dump reads them beside it.
  std::atomic<std::uint64_t> issued_{0};        // operations, by the calling thread
  std::atomic<std::uint64_t> begun_{0};         // by the token holder, in order
  std::atomic<std::uint64_t> done_{0};          // all up to this one have ended here
  std::uint64_t rejected_ = 0;                  // the last operation that this rank rejected, while others may not know; 0: none
  std::array<std::uint64_t, 2> ended_early_{};  // beyond done_

  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  Status failure_;
};

}  // namespace seto
