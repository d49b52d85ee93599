#include "src/core/host_stream/host_stream.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>
#include <utility>

#include "src/core/communicator/collective_task.h"
#include "src/core/communicator/communicator.h"
#include "src/core/connect/multi_context_wait.h"

namespace seto {
namespace {

// A waiter whose head item is driven by another thread checks this often.
constexpr std::chrono::milliseconds kStandByTime{1};

}  // namespace

struct HostStream::Item final {
  // One task of the item.
  struct Part final : TaskGate {
    explicit Part(Item& its_item) : item(its_item) {}
    [[nodiscard]] bool open() override { return true; }  // the stream starts the task only when it may begin
    void ended(const Status& status) override { item.stream.ended(item, status); }

    Item& item;
    std::unique_ptr<Task> task;
    std::shared_ptr<Context> context;
    std::shared_ptr<QueuedTasks> waiting;  // the communicator's queue
    bool claimed = false;
    bool waited_for_next = false;
  };

  explicit Item(HostStream& its_stream) : stream(its_stream) {}

  [[nodiscard]] bool claim();  // locked
  void start();
  [[nodiscard]] bool drive(Deadline until) const;
  void pass() const;
  [[nodiscard]] bool let_go() const {
    return std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.task->ended(); });
  }
  void keep_first(const Status& status) {
    if (outcome.ok()) outcome = status;
  }

  HostStream& stream;
  std::uint64_t position = 0;
  // An item holds one of these three.
  std::list<Part> parts;
  Function function;
  std::shared_ptr<HostStream> other;

  bool started = false;
  std::size_t under_way = 0;  // parts that have not ended
  Status outcome;             // combined result of the parts that have ended
  std::uint64_t other_position = 0;
};

// Claims the item's tasks for starting. Returns false if none of its tasks is left to run.
bool HostStream::Item::claim() {
  for (Part& part : parts) {
    part.claimed = part.waiting->claim(*part.task);
    if (part.claimed)
      ++under_way;
    else
      keep_first(part.task->status());
  }
  return under_way > 0;
}

void HostStream::Item::start() {
  using Caller = Progress::Caller;
  for (const Part& part : parts)
    if (part.claimed) part.context->progress().join(*part.task, part.waited_for_next ? Caller::waits_next : Caller::leaves);
}

bool HostStream::Item::drive(Deadline until) const {
  if (parts.size() == 1) return parts.front().context->progress().wait(*parts.front().task, until);
  MultiContextWait waits;
  for (const Part& part : parts) waits.add(part.context, *part.task);
  return waits.wait(until);
}

// Makes one pass over each context of the item. Adjacent calls usually share a communicator.
void HostStream::Item::pass() const {
  const Context* last = nullptr;
  for (const Part& part : parts) {
    if (part.context.get() != last) (void)part.context->progress().pass();
    last = part.context.get();
  }
}

HostStream::~HostStream() = default;

// ---- queueing ----

HostStream::Batch::Batch(HostStream& stream) : stream_(stream), item_(std::make_shared<Item>(stream)) {}

template <class AnyCall>
Status HostStream::Batch::add_task(Communicator& communicator, const AnyCall& call, bool waited_for_next) {
  SETO_TRY(communicator.context()->progress().prepare());
  Item::Part& part = item_->parts.emplace_back(*item_);
  part.context = communicator.context();
  part.waiting = communicator.waiting();
  part.task = communicator.issue(call, &part);
  part.waited_for_next = waited_for_next;
  return {};
}

Status HostStream::Batch::add(Communicator& communicator, const Call& call) {
  return add_task(communicator, call, call.waited_for_next);
}
Status HostStream::Batch::add(Communicator& communicator, const TransferCall& call) { return add_task(communicator, call); }
Status HostStream::Batch::add(Communicator& communicator, const ReceiveAnyCall& call) { return add_task(communicator, call); }

void HostStream::Batch::queue() {
  if (!item_->parts.empty()) stream_.append(std::move(item_));
}

template <class AnyCall>
Status HostStream::enqueue_call(Communicator& communicator, const AnyCall& call) {
  Batch batch(*this);
  SETO_TRY(batch.add(communicator, call));
  batch.queue();
  return {};
}

Status HostStream::enqueue(Communicator& communicator, const Call& call) { return enqueue_call(communicator, call); }
Status HostStream::enqueue(Communicator& communicator, const TransferCall& call) { return enqueue_call(communicator, call); }
Status HostStream::enqueue(Communicator& communicator, const ReceiveAnyCall& call) { return enqueue_call(communicator, call); }

void HostStream::enqueue_function(Function function) {
  auto item = std::make_shared<Item>(*this);
  item->function = std::move(function);
  append(std::move(item));
}

Status HostStream::enqueue_wait(const std::shared_ptr<HostStream>& other, std::uint64_t position) {
  {
    const std::lock_guard lock(other->mutex_);
    SETO_TRY(other->check_position(position));
  }
  if (other.get() == this) return {};  // items of this stream are ordered anyway
  auto item = std::make_shared<Item>(*this);
  item->other = other;
  item->other_position = position;
  append(std::move(item));
  return {};
}

void HostStream::append(std::shared_ptr<Item> item) {
  {
    const std::lock_guard lock(mutex_);
    remove_ended();
    item->position = queued_ + 1;
    items_.push_back(std::move(item));  // may throw, so the position is counted after it
    ++queued_;
  }
  advance();
}

std::uint64_t HostStream::position() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

// ---- advancing ----

// Called on the thread that drives a context of the head item, as the last action of one of its tasks.
void HostStream::ended(Item& item, const Status& status) {
  const std::shared_ptr<HostStream> self = shared_from_this();  // a waiter for the last item may release this stream
  Streams others;
  {
    const std::lock_guard lock(mutex_);
    item.keep_first(status);
    if (--item.under_way > 0) return;
    head_ended(item.outcome, others);
  }
  others.push_back(self);
  while (!others.empty()) {
    const std::shared_ptr<HostStream> next = std::move(others.back());
    others.pop_back();
    next->advance(others);
  }
}

void HostStream::advance() {
  Streams others;
  advance(others);
  while (!others.empty()) {
    const std::shared_ptr<HostStream> next = std::move(others.back());
    others.pop_back();
    next->advance(others);
  }
}

void HostStream::advance(Streams& others) {
  std::unique_lock lock(mutex_);
  if (busy_) {
    recheck_ = true;
    return;
  }
  while (const std::shared_ptr<Item> item = head()) {
    if (!item->parts.empty()) {
      if (std::exchange(item->started, true)) return;
      if (!item->claim()) {
        head_ended(item->outcome, others);
        continue;
      }
      lock.unlock();
      item->start();
      return;
    }
    busy_ = true;
    recheck_ = false;
    const Status before = last_outcome_;
    lock.unlock();
    bool done = true;
    if (item->function != nullptr)
      item->function(before);
    else
      done = item->other->reached_or_notify(item->other_position, shared_from_this());
    lock.lock();
    busy_ = false;
    if (done)
      head_ended({}, others);
    else if (!recheck_)
      return;
  }
}

void HostStream::head_ended(const Status& status, Streams& others) {
  ++ended_;
  last_outcome_ = status;
  if (!status.ok() && first_failure_.ok()) {
    first_failure_ = status;
    failed_at_ = ended_;
  }
  std::erase_if(followers_, [&](const Follower& follower) {
    if (follower.position > ended_) return false;
    if (auto stream = follower.stream.lock()) others.push_back(std::move(stream));
    return true;
  });
  changed_.notify_all();
}

bool HostStream::reached_or_notify(std::uint64_t position, const std::shared_ptr<HostStream>& other) {
  const std::lock_guard lock(mutex_);
  if (ended_ >= position) return true;
  followers_.push_back({position, other});
  return false;
}

std::shared_ptr<HostStream::Item> HostStream::head() const {
  const std::uint64_t gone = queued_ - items_.size();  // positions no longer kept
  if (ended_ == queued_) return nullptr;
  return items_[static_cast<std::size_t>(ended_ - gone)];
}

// A task calls ended() shortly before it releases itself.
void HostStream::remove_ended() {
  while (!items_.empty() && items_.front()->position <= ended_ && items_.front()->let_go()) items_.pop_front();
}

// ---- waiting ----

Status HostStream::check_position(std::uint64_t position) const {
  if (position <= queued_) return {};
  return failure(Code::invalid_argument, "position: %llu is beyond the last item, %llu",
                 static_cast<unsigned long long>(position), static_cast<unsigned long long>(queued_));
}

Status HostStream::result_up_to(std::uint64_t position) const {
  return !first_failure_.ok() && failed_at_ <= position ? first_failure_ : Status();
}

Status HostStream::wait(std::uint64_t position, Deadline until) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      SETO_TRY(check_position(position));
      remove_ended();
      const bool reached = ended_ >= position;
      // The last task is a few instructions away from releasing itself; the caller may destroy this stream next.
      const bool let_go = items_.empty() || items_.front()->position > position;
      if (reached && let_go) return result_up_to(position);
      if (reached) {
        std::this_thread::yield();
        continue;
      }
    }
    if (drive_head(position, until)) continue;
    if (until.passed())
      return failure(Code::timeout, "the stream did not reach position %llu in time", static_cast<unsigned long long>(position));
  }
}

// Drives the head item once. Returns false if this thread cannot drive it, or the deadline has passed. Items after `position` are
// not driven; the head may have ended since it was read.
bool HostStream::drive_head(std::uint64_t position, Deadline until) {
  std::shared_ptr<Item> item;
  {
    std::unique_lock lock(mutex_);
    item = head();
    if (item == nullptr) return !until.passed();
    if (item->position > position) return true;
    const bool foreign = item->parts.empty() && item->other == nullptr;
    if (foreign) {
      changed_.wait_for(lock, kStandByTime);
      return false;
    }
  }
  if (!item->parts.empty()) return item->drive(until);
  const Status awaited = item->other->wait(item->other_position, until);
  if (awaited.code() == Code::timeout && until.passed()) return false;
  advance();
  return true;
}

Status HostStream::poll(std::uint64_t position) {
  std::shared_ptr<Item> item;
  {
    const std::lock_guard lock(mutex_);
    SETO_TRY(check_position(position));
    remove_ended();
    if (ended_ >= position) return result_up_to(position);
    item = head();
  }
  if (item != nullptr) item->pass();
  const std::lock_guard lock(mutex_);
  if (ended_ >= position) return result_up_to(position);
  return {Code::in_progress, "in progress"};
}

}  // namespace seto
