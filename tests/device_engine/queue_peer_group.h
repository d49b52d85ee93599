#pragma once

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "transports/optional_streams.h"
#include "transports/peer_group.h"

namespace seto::support {

// Streams between the members of a test as queues of one process, each exactly as deep as it was opened: what relies on more
// depth than it asked for does not end. One thread.
class QueueStreams final {
 public:
  struct Queue {
    StreamGeometry geometry;
    std::uint64_t sent = 0, received = 0;                                 // messages
    std::deque<std::pair<std::size_t, std::vector<std::byte>>> messages;  // size, and a slot that is never empty
    std::vector<std::byte> filling;
  };
  using Address = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>;  // sender, receiver, port

  Queue& queue(const Address& address) { return queues_[address]; }
  [[nodiscard]] std::size_t size() const { return queues_.size(); }

 private:
  std::map<Address, Queue> queues_;
};

class QueuePeerGroup final : public PeerGroup {
 public:
  QueuePeerGroup(QueueStreams& streams, std::uint32_t own, std::uint32_t members)
      : streams_(streams), own_(own), members_(members) {}

  [[nodiscard]] std::uint32_t members() const override { return members_; }
  [[nodiscard]] PeerStatus& status() override { std::abort(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override {
    return std::unique_ptr<SendStream>(new Sender(opened({own_, receivers.front(), address.port}, geometry)));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override {
    return std::unique_ptr<ReceiveStream>(new Receiver(opened({address.sender, own_, address.port}, geometry)));
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t) override { return failure_of_test(); }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t) override { return failure_of_test(); }
  void complete(std::uint64_t) override {}
  [[nodiscard]] Status failure() const override { return {}; }

 private:
  using Queue = QueueStreams::Queue;

  class Sender final : public SendStream {
   public:
    explicit Sender(Queue& queue) : queue_(queue) {}
    std::byte* acquire(Mark) override {
      if (queue_.sent - queue_.received >= queue_.geometry.depth) return nullptr;
      queue_.filling.resize(queue_.geometry.slot_size);
      return queue_.filling.data();
    }
    void commit(Mark, std::size_t size) override {
      SETO_CHECK(size <= queue_.geometry.slot_size);
      queue_.messages.emplace_back(size, queue_.filling);
      ++queue_.sent;
    }
    [[nodiscard]] std::uint64_t handed_over(std::uint64_t) const override { return queue_.sent; }
    [[nodiscard]] std::uint64_t acknowledged(std::uint64_t) const override { return queue_.received; }
    [[nodiscard]] std::uint64_t released(std::uint64_t) const override { return queue_.received; }

   private:
    Queue& queue_;
  };

  class Receiver final : public ReceiveStream, private SizedReceiver {
   public:
    explicit Receiver(Queue& queue) : queue_(queue) {}
    const std::byte* front(Mark) override { return queue_.messages.empty() ? nullptr : queue_.messages.front().second.data(); }
    void release(Mark) override {
      queue_.messages.pop_front();
      ++queue_.received;
    }
    [[nodiscard]] SizedReceiver* sized() override { return this; }

   private:
    bool has_size(Mark, std::size_t size) override { return queue_.messages.front().first == size; }
    Queue& queue_;
  };

  Queue& opened(const QueueStreams::Address& address, const StreamGeometry& geometry) {
    Queue& queue = streams_.queue(address);
    SETO_CHECK(queue.geometry.digest == 0 || queue.geometry.depth == geometry.depth);
    queue.geometry = geometry;
    return queue;
  }
  static Status failure_of_test() { return {Code::internal, "a test without messages of pairs"}; }

  QueueStreams& streams_;
  const std::uint32_t own_, members_;
};

}  // namespace seto::support
