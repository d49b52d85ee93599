#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/core/communicator/collective_task.h"
#include "src/core/communicator/communicator.h"

namespace seto {

// A queue of operations that run in order, of any communicators of this process. A position is the number of items ever queued.
// Any thread. An item is handed to its contexts when the one before it has ended, by the thread that ended that one; the queue
// keeps what it runs until a caller comes by after the end. A task that its failed communicator has ended before counts as ended
// when its turn comes.
class HostStream final : public std::enable_shared_from_this<HostStream> {
 public:
  // Is told how the item before it ended; must not block, and must not come back here.
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
  // Later items start after `other` has reached the position, which it must know already.
  Status enqueue_wait(const std::shared_ptr<HostStream>& other, std::uint64_t position);

  [[nodiscard]] std::uint64_t position() const;
  // Drives the work inline. The first failure up to the position.
  Status wait(std::uint64_t position, Deadline until);
  Status poll(std::uint64_t position);

 private:
  struct Item;
  using Streams = std::vector<std::shared_ptr<HostStream>>;

  template <class AnyCall>
  Status enqueue_call(Communicator& communicator, const AnyCall& call);
  void append(std::shared_ptr<Item> item);
  // One task of it.
  void ended(Item& item, const Status& status);
  // Starts the item whose turn it is, and goes on with what others waited for.
  void go_on();
  void go_on(Streams& others);
  void head_ended(const Status& status, Streams& others);  // locked
  bool reached_or_tell(std::uint64_t position, const std::shared_ptr<HostStream>& other);
  Status check_position(std::uint64_t position) const;  // locked
  Status result_up_to(std::uint64_t position) const;    // locked
  [[nodiscard]] std::shared_ptr<Item> head() const;     // locked: null where all has ended
  void forget_ended();                                  // locked; never on a thread that drives
  bool drive_head(std::uint64_t position, Deadline until);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Item>> items_;  // those before `ended_` are kept until their tasks have let go
  std::uint64_t queued_ = 0;
  std::uint64_t ended_ = 0;
  bool busy_ = false;    // somebody runs the head, without the lock
  bool again_ = false;   // and is to look once more
  Status last_outcome_;  // of the item that ended last
  Status first_failure_;
  std::uint64_t failed_at_ = 0;
  struct Follower {
    std::uint64_t position;
    std::weak_ptr<HostStream> stream;
  };
  std::vector<Follower> followers_;
};

// Calls that become one item: all start when it is their turn, so that they may wait for each other, and it has ended when all
// have, with the first failure of them. Operations take their numbers as they are added; the stream outlives the batch.
class HostStream::Batch final {
 public:
  explicit Batch(HostStream& stream);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  [[nodiscard]] const HostStream& stream() const { return stream_; }
  Status add(Communicator& communicator, const Call& call);
  Status add(Communicator& communicator, const TransferCall& call);
  Status add(Communicator& communicator, const ReceiveAnyCall& call);
  // Once, after all.
  void queue();

 private:
  template <class AnyCall>
  Status add_task(Communicator& communicator, const AnyCall& call, bool waited_for_next = false);

  HostStream& stream_;
  std::shared_ptr<Item> item_;
};

}  // namespace seto
