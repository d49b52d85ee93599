#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "src/core/communicator/communicator.h"
#include "src/core/device_relay/relay_task.h"
#include "src/core/device_relay/staging.h"
#include "src/engine/relay/relayed_messages.h"

namespace seto {

// Sends and receives of one communicator with ranks that its GPU does not reach. They are no operations: a task of the control's
// context moves them while a launch of them is under way, and until the control's streams have taken all that its kernel sent.
class MessageRelay final {
 public:
  // The first two outlive it. It ends its task, whatever is left. `on_launch_of_graph`: called by host functions of streams.
  static Result<std::unique_ptr<MessageRelay>> create(Communicator& control, const Staging& staging,
                                                      std::function<void()> on_launch_of_graph);
  ~MessageRelay();
  MessageRelay(const MessageRelay&) = delete;
  MessageRelay& operator=(const MessageRelay&) = delete;

  // Messages move as long as this exists. It may outlive the relay.
  class Use;
  // A launch that a graph repeats at any time. run_before() and run_after() are host functions of its stream, around its kernel,
  // with this as their argument.
  class Replay;
  struct DropReplay {
    void operator()(Replay* replay) const;
  };
  static void run_before(void* replay);
  static void run_after(void* replay);

  // For a launch of messages with those ranks, before it is issued. On the launching thread.
  struct Hold {
    std::shared_ptr<Use> use{};  // until the end of the launch; null: of a graph
    // Null: not of a graph. The caller releases it once the stream has it.
    std::unique_ptr<Replay, DropReplay> replay{};
  };
  Result<Hold> hold(std::span<const Rank> peers, LaunchKind kind);

  // Messages are moving. Any thread.
  [[nodiscard]] bool is_busy() const;
  // For a communicator that ends, again and again: its kernels have ended but those of graphs, and these, and what all have sent,
  // are waited for no longer than for a call. Then the control fails. Any thread.
  void check_end();
  // Token held. That rank has left or died, and what it sent before is still on its way to the kernel.
  [[nodiscard]] bool may_bring(Rank peer) const {
    return control_.members().data_may_arrive_from(peer) || messages_.is_bringing(peer);
  }

 private:
  class Mover;
  struct Gate {  // launches of graphs may begin and end late, after the end of the relay
    std::mutex mutex;
    MessageRelay* relay = nullptr;
  };

  MessageRelay(Communicator& control, const Staging& staging, const TransferArea& area, std::function<void()> on_launch_of_graph);
  void close();
  Status open(Rank peer);
  void begin_use();
  void end_use();
  void begin_replay();
  void end_replay();
  // For the task, token held.
  void judge_replays();
  Result<bool> move();
  bool may_end();

  Communicator& control_;
  const std::function<void()> on_launch_of_graph_;
  RelayedMessages messages_;
  const std::shared_ptr<Gate> gate_;

  // Under the mutex of the gate.
  std::uint64_t uses_ = 0;                 // launches under way
  std::uint64_t replays_ = 0;              // those of graphs
  std::optional<Deadline> replays_until_;  // since one of them has begun, and none has ended
  bool is_closed_ = false;
  std::unique_ptr<Mover> mover_;       // null: there was none yet
  std::optional<Deadline> end_until_;  // since the last kernel has ended and the communicator ends
};

}  // namespace seto
