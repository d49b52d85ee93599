#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/clock.h"
#include "src/core/call/collective_call.h"
#include "src/core/launch/point_to_point.h"

namespace seto {

class Communicator;

// A queue of operations that run in order, on any communicators of this process. A position is the number of items ever queued.
// Any thread. An item is handed to its contexts when the item before it has ended, by the thread that ended it. The queue keeps
// an item's tasks until a caller enters after the end. A task that a failed communicator has already ended counts as ended when
// its turn arrives.
class HostStream final : public std::enable_shared_from_this<HostStream> {
 public:
  // Receives the result of the item before it. Must not block and must not call this stream.
  using Function = std::function<void(const Status&)>;
  class Batch;

  HostStream() = default;
  ~HostStream();
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  Status enqueue(Communicator& communicator, const Call& call);
  Status enqueue(Communicator& communicator, const TransferCall& call);
  Status enqueue(Communicator& communicator, const ReceiveAnyCall& call);
  void enqueue_function(Function function);
  // Later items start after `other` has reached the position, which must already be queued there.
  Status enqueue_wait(const std::shared_ptr<HostStream>& other, std::uint64_t position);

  [[nodiscard]] std::uint64_t position() const;
  // Drives the work inline. Returns the first failure up to the position.
  Status wait(std::uint64_t position, Deadline until);
  Status poll(std::uint64_t position);

 private:
  struct Item;
  using Streams = std::vector<std::shared_ptr<HostStream>>;

  template <class AnyCall>
  Status enqueue_call(Communicator& communicator, const AnyCall& call);
  void append(std::shared_ptr<Item> item);
  // A task of the item has ended.
  void ended(Item& item, const Status& status);
  // Starts the next item, and advances the streams that wait for this one.
  void advance();
  void advance(Streams& others);
  void head_ended(const Status& status, Streams& others);  // locked
  bool reached_or_notify(std::uint64_t position, const std::shared_ptr<HostStream>& other);
  Status check_position(std::uint64_t position) const;  // locked
  Status result_up_to(std::uint64_t position) const;    // locked
  [[nodiscard]] std::shared_ptr<Item> head() const;     // locked; null if all items have ended
  void remove_ended();                                  // locked; never on a thread that drives
  bool drive_head(std::uint64_t position, Deadline until);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Item>> items_;  // items before `ended_` are kept until their tasks have been released
  std::uint64_t queued_ = 0;
  std::uint64_t ended_ = 0;
  bool busy_ = false;     // a thread runs the head item, without the lock
  bool recheck_ = false;  // that thread must check the queue again
  Status last_outcome_;   // result of the item that ended last
  Status first_failure_;
  std::uint64_t failed_at_ = 0;
  struct Follower {
    std::uint64_t position;
    std::weak_ptr<HostStream> stream;
  };
  std::vector<Follower> followers_;
};

// Calls that become one item. All start together, so that they may wait for each other; the item has ended when all have, with
// the first failure. Operations take their numbers when they are added; the stream outlives the batch.
class HostStream::Batch final {
 public:
  explicit Batch(HostStream& stream);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Status add(Communicator& communicator, const Call& call);
  Status add(Communicator& communicator, const TransferCall& call);
  Status add(Communicator& communicator, const ReceiveAnyCall& call);
  // Call once, after the last add.
  void queue();

 private:
  template <class AnyCall>
  Status add_task(Communicator& communicator, const AnyCall& call, bool waited_for_next = false);

  HostStream& stream_;
  std::shared_ptr<Item> item_;
};

}  // namespace seto
