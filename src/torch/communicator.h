#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "include/seto/seto.h"
#include "src/torch/work.h"

namespace seto::torch_backend {

// As the library counts a limit: 1 ms at least, as none at all would mean another one.
std::uint32_t milliseconds_of(std::chrono::milliseconds time);

// The library's context of one rank of this process, which all its groups share: connections, slots, progress.
class SharedContext final {
 public:
  // The same for the same rank as long as anybody has it.
  static std::shared_ptr<SharedContext> of_rank(std::int64_t global_rank);
  SharedContext();
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;
  ~SharedContext();

  [[nodiscard]] setoContext_t get() const { return context_; }

 private:
  setoContext_t context_ = nullptr;
};

// Calls that follow each other run one behind the other; those of different lanes do not wait for each other. Collectives have
// one lane, since they end in their order anyway; messages one for each peer and direction, and batches of messages each their
// own, since a send may wait for a receive that this rank issues after it.
struct Lane {
  enum class Kind : std::uint8_t { collectives, sends, receives, receives_of_any, batches, message_batches };
  Kind kind = Kind::collectives;
  int number = 0;  // of the peer, or of the lane among its kind

  auto operator<=>(const Lane&) const = default;
};

// A communicator with the streams that its calls run on. Any thread.
class Channel final : public std::enable_shared_from_this<Channel> {
 public:
  struct Making {
    c10::intrusive_ptr<c10d::Store> store;
    int rank = 0;
    int ranks = 1;
    std::int64_t global_rank = 0;
    std::string name;
    std::string codec;
    std::string algorithm;
    std::chrono::milliseconds timeout{};
  };
  // Where a call is issued.
  struct Seat {
    setoComm_t comm;
    setoStream_t stream;
    const setoCallConfig_t* config;
  };
  using Call = std::function<setoResult_t(const Seat&)>;

  // Blocks until every rank has come, or the timeout.
  static std::shared_ptr<Channel> make(const Making& making);
  Channel(std::shared_ptr<SharedContext> context, setoComm_t comm);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // Queues the calls as one item and returns; the work is told of its end. Several calls form a group.
  void launch(Lane lane, const std::vector<Call>& calls, const setoCallConfig_t& config, const c10::intrusive_ptr<Work>& work);
  // Of works that have ended: what the library's threads must not do, as it may end this channel.
  void forget_ended();
  // A lane for messages that belong together, in which nothing is under way: they wait for nothing but their peers.
  Lane idle_lane();

  // What a lossy codec leaves out of tensors of this size; see setoErrorFeedbackCreate.
  setoErrorFeedback_t make_error_feedback(std::size_t count, setoDataType_t type);

  // What each rank of the group does, and the calls that were issued last.
  [[nodiscard]] std::string dump(setoFormat_t format) const;

  void abort();
  // Waits for what this rank has issued, or aborts it where a wait was interrupted before.
  void shut_down();
  // By whoever waits; throws.
  void look_for_interrupts();
  [[nodiscard]] setoResult_t error() const;
  // A call of it has failed; true: not the first.
  bool failed_again() { return failed_.exchange(true, std::memory_order_relaxed); }

 private:
  struct Stream {
    setoStream_t handle = nullptr;
    std::uint64_t last = 0;  // position of what was queued last
  };

  static void on_outcome(setoResult_t result, const char* text, void* work) noexcept;

  Stream& stream_of(Lane lane);  // locked

  const std::shared_ptr<SharedContext> context_;
  mutable std::mutex issuing_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> interrupted_{false};
  setoComm_t comm_;  // null once it is gone
  std::map<Lane, Stream> streams_;
  std::mutex endings_;
  std::vector<c10::intrusive_ptr<Work>> ended_;
};

}  // namespace seto::torch_backend
