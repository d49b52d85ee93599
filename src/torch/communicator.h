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

// A timeout in whole milliseconds, at least 1: for the library 0 means the default.
std::uint32_t milliseconds_of(std::chrono::milliseconds time);

// The library's context of one rank of this process. All groups of the rank share it: connections, slots, progress.
class SharedContext final {
 public:
  // Returns the same object for the same rank while any group holds it.
  static std::shared_ptr<SharedContext> of_rank(std::int64_t global_rank);
  SharedContext();
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;
  ~SharedContext();

  [[nodiscard]] setoContext_t get() const { return context_; }

 private:
  setoContext_t context_ = nullptr;
};

// Selects the host stream of a call. Calls of one stream run one after another; calls of different streams do not wait for each
// other. Collectives share one stream, since they end in order anyway. Messages have one for each peer and direction, and each
// batch of messages has its own, since a send may wait for a receive that this rank issues later.
struct StreamKey {
  enum class Kind : std::uint8_t { collectives, sends, receives, receives_of_any, batches, message_batches };
  Kind kind = Kind::collectives;
  int number = 0;  // the peer, or a number among the streams of this kind

  auto operator<=>(const StreamKey&) const = default;
};

// A communicator with the streams that its calls run on. Any thread.
class Communicator final : public std::enable_shared_from_this<Communicator> {
 public:
  struct CommunicatorRequest {
    c10::intrusive_ptr<c10d::Store> store;
    int rank = 0;
    int ranks = 1;
    std::int64_t global_rank = 0;
    std::string name;
    std::string codec;
    std::string algorithm;
    std::chrono::milliseconds timeout{};
    setoMemory_t memory = setoMemoryHost;
  };
  // The handles with which a call is issued.
  struct IssueTarget {
    setoComm_t comm;
    setoStream_t stream;
    const setoCallConfig_t* config;
  };
  using Call = std::function<setoResult_t(const IssueTarget&)>;

  // Blocks until every rank has joined, or until the timeout. With device memory, the GPU is that of the current CUDA context.
  static setoComm_t connect(const CommunicatorRequest& request, const SharedContext& context);
  static std::shared_ptr<Communicator> make(const CommunicatorRequest& request);
  Communicator(std::shared_ptr<SharedContext> context, setoComm_t comm);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  // Queues the calls as one item and returns. The work is notified when they end. Several calls form a group.
  void launch(StreamKey key, const std::vector<Call>& calls, const setoCallConfig_t& config,
              const c10::intrusive_ptr<Work>& work);
  // Releases works that have ended. The library's threads must not do this, because the last release may destroy this object.
  void forget_ended();
  // A stream for a batch of messages in which no call is under way, so that they wait only for their peers.
  StreamKey idle_key();

  // The error-feedback state for tensors of this size; see setoErrorFeedbackCreate.
  setoErrorFeedback_t make_error_feedback(std::size_t count, setoDataType_t type);

  // The state of each rank of the group, and the last calls.
  [[nodiscard]] std::string dump(setoFormat_t format) const;
  static std::string dump_of(setoComm_t comm, setoFormat_t format);

  void abort();
  // Waits for the calls of this rank. If an earlier wait was interrupted, aborts them instead.
  void shut_down();
  // Called by a waiting thread. Throws if the wait was interrupted.
  void look_for_interrupts();
  [[nodiscard]] setoResult_t error() const;
  // Records that a call has failed. Returns true if one had failed before.
  bool failed_again() { return failed_.exchange(true, std::memory_order_relaxed); }

 private:
  struct Stream {
    setoStream_t handle = nullptr;
    std::uint64_t last = 0;  // position of the item that was queued last
  };

  static void on_outcome(setoResult_t result, const char* text, void* work) noexcept;

  Stream& stream_of(StreamKey key);  // locked

  const std::shared_ptr<SharedContext> context_;
  mutable std::mutex issuing_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> interrupted_{false};
  setoComm_t comm_;  // null after it was destroyed
  std::map<StreamKey, Stream> streams_;
  std::mutex endings_;
  std::vector<c10::intrusive_ptr<Work>> ended_;
};

}  // namespace seto::torch_backend
