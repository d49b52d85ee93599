#include "src/core/communicator/communicator.h"

#include <algorithm>

#include "src/base/log.h"
#include "src/core/bells.h"
#include "src/core/communicator/link_calibration.h"
#include "src/core/communicator/collective_task.h"
#include "src/core/communicator/finalize_task.h"
#include "src/core/call/error_feedback.h"
#include "src/core/call/call_summary.h"
#include "src/core/communicator/receive_any_task.h"
#include "src/core/connect/deferred_cleanup.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/communicator/transfer_task.h"

namespace seto {
namespace {

// Of a drain. One that finds nothing to do soon sleeps for a millisecond.
constexpr std::uint32_t kIdlePassesBetweenLooks = 16;

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& bootstrap, const CommunicatorOptions& options) {
  std::unique_ptr<Communicator> communicator(new Communicator());
  communicator->rank_ = bootstrap.rank();
  communicator->ranks_ = bootstrap.size();
  communicator->name_ = options.name;
  communicator->config_ = options.config;
  communicator->context_ = options.context;
  if (communicator->context_ == nullptr) {
    SETO_ASSIGN(communicator->context_, Context::create(options.config));
  }
  const Deadline until = Deadline::after_ms(options.config.init_timeout_ms).unless(options.given_up);
  SETO_TRY(communicator->meet(bootstrap, until));
  SETO_TRY(Seeing::prepare(communicator->config_));
  communicator->launches_ = std::make_unique<LaunchCache>(
      LaunchCache::Setup{communicator->rank_, communicator->ranks_, &communicator->tiers_, &communicator->costs_,
                         &communicator->config_, communicator->circle_.get(), communicator->crowding_});
  communicator->transfers_ =
      std::make_unique<Transfers>(communicator->rank_, communicator->ranks_, *communicator->circle_, options.config.slot_store);
  const std::uint64_t start_ns = monotonic_ns();
  SETO_ASSIGN(communicator->costs_, agree_on_costs(*communicator, bootstrap, until));
  communicator->calibration_ns_ = monotonic_ns() - start_ns;
  communicator->seeing_.start(*communicator);
  return communicator;
}

Communicator::~Communicator() {
  seeing_.stop();
  if (circle_ == nullptr) {
    if (board_.size > 0) context_->pool().give_back_board(board_.offset, board_.size);
    return;
  }
  if (under_way_.load(std::memory_order_acquire) > 0) {
    fail(failure(Code::aborted, "rank %d destroyed the communicator before its operations had ended", rank_), rank_);
    (void)drain();
  }
  launches_.reset();
  context_->ends(failed());
  circle_->leave({static_cast<std::uint32_t>(Code::invalid_usage), static_cast<std::uint32_t>(rank_)});
  circle_->depart();
  context_->retire(std::make_unique<Remains>(
      Remains::Parts{std::move(connections_), std::move(circle_), std::move(transfers_), issued(), &context_->pool(), board_}));
}

int Communicator::others_of_process() const {
  return static_cast<int>(std::count_if(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection != nullptr && connection->within_process();
  }));
}

// ---- operations ----

Status Communicator::run(const Call& call) {
  if (failed()) return first_failure();
  Status rejected;
  BoundShape* const shape = prepared(call, rejected);
  CollectiveTask task(*this, call, shape, count_operation(), nullptr);
  if (shape == nullptr) task.reject(std::move(rejected));
  context_->progress().run(task);
  return task.status();
}

// Checked, chosen and bound. A call that repeats the last one, buffers included, was all of that before: a sixth of the time of
// an 8-byte all-reduce.
BoundShape* Communicator::prepared(const Call& call, Status& rejected) {
  if (last_shape_ != nullptr && repeats(last_call_, call)) return last_shape_;
  last_shape_ = nullptr;
  rejected = check(call, rank_, ranks_);
  if (rejected.ok() && call.feedback != nullptr) rejected = call.feedback->check_communicator(*this);
  if (!rejected.ok()) return nullptr;
  // Calls of a group or a stream have their shapes before progress hears of them.
  const bool busy = issued() > done_.load(std::memory_order_acquire) || !context_->progress().idle();
  Result<BoundShape*> found = launches_->find(call, busy);
  if (!found.ok()) {
    rejected = found.status();
    return nullptr;
  }
  last_call_ = call;
  last_call_.counts = last_call_.displacements = {};
  last_call_.feedback.reset();
  last_shape_ = call.counts.empty() ? found.value() : nullptr;
  return found.value();
}

std::unique_ptr<Task> Communicator::issue(const Call& call, TaskGate* gate) {
  Status rejected;
  BoundShape* const shape = prepared(call, rejected);
  auto task = std::make_unique<CollectiveTask>(*this, call, shape, count_operation(), gate);
  if (shape == nullptr) task->reject(std::move(rejected));
  if (gate != nullptr) await_turn(*task);
  return task;
}

Status Communicator::run(const TransferCall& call) {
  if (failed()) return first_failure();
  TransferTask task(*this, transfers_->prepare(call), call, nullptr);
  context_->progress().run(task);
  return task.status();
}

std::unique_ptr<Task> Communicator::issue(const TransferCall& call, TaskGate* gate) {
  auto task = std::make_unique<TransferTask>(*this, transfers_->prepare(call), call, gate);
  if (gate != nullptr) await_turn(*task);
  return task;
}

Status Communicator::run(const ReceiveAnyCall& call) {
  if (failed()) return first_failure();
  ReceiveAnyTask task(*this, transfers_->open_all(), call, nullptr);
  context_->progress().run(task);
  return task.status();
}

std::unique_ptr<Task> Communicator::issue(const ReceiveAnyCall& call, TaskGate* gate) {
  auto task = std::make_unique<ReceiveAnyTask>(*this, transfers_->open_all(), call, gate);
  if (gate != nullptr) await_turn(*task);
  return task;
}

void Communicator::await_turn(Task& task) {
  under_way_.fetch_add(1, std::memory_order_relaxed);
  waiting_->add(task);
}

Status Communicator::drain() {
  Progress& progress = context_->progress();
  for (std::uint32_t idle = 0; under_way_.load(std::memory_order_acquire) > 0;) {
    if (idle % kIdlePassesBetweenLooks == 0) miss_the_gone();
    if (failed()) under_way_.fetch_sub(waiting_->end_all(first_failure()), std::memory_order_release);
    if (progress.pass())
      idle = 0;
    else
      progress.relax(idle++);
  }
  return failed() ? first_failure() : Status();
}

void Communicator::begin(const Note& note) {
  begun_.store(note.operation, std::memory_order_relaxed);
  circle_->begin(note);
}

void Communicator::begin_rejected(Note note, const Status& reason) {
  note.verdict = static_cast<std::uint32_t>(reason.code());
  put_reason(note, reason.text());
  rejected_ = note.operation;
  begin(note);
}

// Two operations may be under way, and the later may end first: others are told only of an unbroken row.
void Communicator::complete(std::uint64_t operation) {
  std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (operation != done + 1) {
    ended_early_[operation % ended_early_.size()] = operation;
    return;
  }
  ++done;
  while (ended_early_[(done + 1) % ended_early_.size()] == done + 1) ++done;
  circle_->complete(done);
  done_.store(done, std::memory_order_release);
}

Status Communicator::finalize() {
  SETO_TRY(drain());
  DrainTask task(*this);
  context_->progress().run(task);
  return task.status();
}

// ---- failures ----

// Called while an operation has not moved for a while: is there a reason?
Status Communicator::look_around(const Note& own) {
  // Who is gone is asked before the notes are compared: who left because of a note has seen it, so it is there to be seen.
  Rank culprit = rank_;
  Status reason;
  for (Rank peer = 0; peer < ranks_ && reason.ok(); ++peer) {
    culprit = peer;
    reason = died(peer, own);
  }
  for (Rank peer = 0; peer < ranks_ && reason.ok(); ++peer) {
    culprit = blamed_by(peer);
    reason = left(peer, own);
  }
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) SETO_TRY(heed(peer, own));
  if (!reason.ok()) SETO_TRY(heed_earlier(own.operation));
  if (reason.ok()) {
    reason = circle_->failure();
    culprit = rank_;
    if (!reason.ok()) SETO_TRY(heed_earlier(own.operation));
  }
  if (!reason.ok()) {
    fail(reason, culprit);
    return first_failure();
  }
  return {};
}

// What a peer's note says against this rank's. That it rejected the call ends the operation; that it makes another call ends the
// communicator.
Status Communicator::heed(Rank peer, const Note& own) {
  Note theirs;
  if (!circle_->note_of(static_cast<std::uint32_t>(peer), own.operation, theirs)) return {};
  const auto operation = static_cast<unsigned long long>(own.operation);
  if (theirs.verdict != 0)
    return failure(Code::remote_error, "operation %llu: rank %d rejected its call (%s), so it ends on every rank", operation,
                   peer, reason_of(theirs).c_str());
  if (theirs.digest == own.digest) return {};
  if (text_of(own) == text_of(theirs)) {
    fail(failure(Code::remote_error,
                 "operation %llu: ranks %d and %d call %s, but plan it differently: parts, algorithm, codec, slice bytes and "
                 "slot depth (SETO_* variables too) must be the same on all ranks",
                 operation, rank_, peer, text_of(own).c_str()),
         peer);
    return first_failure();
  }
  fail(failure(Code::remote_error, "operation %llu: rank %d calls %s, but rank %d calls %s", operation, rank_,
               text_of(own).c_str(), peer, text_of(theirs).c_str()),
       peer);
  return first_failure();
}

// A rank that only sends may have gone on from an operation before another came to it with a different call.
Status Communicator::heed_earlier(std::uint64_t before) {
  for (std::uint64_t operation = before - 1; operation > 0; --operation) {
    Note own;
    if (!circle_->note_of(static_cast<std::uint32_t>(rank_), operation, own)) return {};
    for (Rank peer = 0; peer < ranks_; ++peer) {
      Note theirs;
      const bool told = peer != rank_ && circle_->note_of(static_cast<std::uint32_t>(peer), operation, theirs);
      if (told && own.verdict == 0 && theirs.verdict == 0) SETO_TRY(heed(peer, own));
    }
  }
  return {};
}

// For an operation in which nothing comes here whose header would tell of another call. Of two ranks that disagree at least one
// sees the other's note: both write their own before they look.
Status Communicator::compare_notes(const Note& own) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) SETO_TRY(heed(peer, own));
  return {};
}

bool Communicator::all_have_completed(std::uint64_t operation) const {
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const auto member = static_cast<std::uint32_t>(peer);
    if (peer != rank_ && circle_->completed_by(member) < operation && circle_->fate_of(member).reason == 0 &&
        !connections_[member]->dead())
      return false;
  }
  return true;
}

bool Communicator::others_follow(std::uint64_t operation) const {
  return operation <= circle_->window() || all_have_completed(operation - circle_->window());
}

bool Communicator::rejection_was_read(std::uint64_t before) {
  if (rejected_ == 0 || before < rejected_ + kNotesKept) return true;
  if (!all_have_completed(rejected_)) return false;
  rejected_ = 0;
  return true;
}

std::string Communicator::absentees(const Note& own) const {
  std::vector<Rank> missing;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    Note theirs;
    const auto member = static_cast<std::uint32_t>(peer);
    if (peer != rank_ && !circle_->note_of(member, own.operation, theirs) && circle_->completed_by(member) < own.operation)
      missing.push_back(peer);
  }
  return missing.empty() ? "all ranks came" : rank_list(missing) + " never came";
}

std::string Communicator::standing(const Note& own, const std::string& where) const {
  return absentees(own) + "; rank " + std::to_string(rank_) + " " + where;
}

Status Communicator::overdue(const Note& own, const TimeLimit& limit, const std::string& where) {
  fail(failure(Code::timeout, "operation %llu (%s) did not end within %s: %s", static_cast<unsigned long long>(own.operation),
               text_of(own).c_str(), limit.text().c_str(), standing(own, where).c_str()),
       rank_);
  return first_failure();
}

void Communicator::warn_of(const Note& own, const std::string& where, double seconds) const {
  SETO_LOG_AS(warn, (LogOrigin{rank_, 0}), "operation %llu (%s) has not ended after %.3g s: %s",
              static_cast<unsigned long long>(own.operation), text_of(own).c_str(), seconds, standing(own, where).c_str());
}

void Communicator::fail(const Status& reason, Rank culprit) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_.ok()) return;
    failure_ = reason;
  }
  failed_.store(true, std::memory_order_release);
  circle_->explain(reason.text());
  circle_->leave({static_cast<std::uint32_t>(reason.code()), static_cast<std::uint32_t>(culprit)});
  context_->wake();
  seeing_.failed();
}

Status Communicator::first_failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

}  // namespace seto
