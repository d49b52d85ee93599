#pragma once

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "transports/gpu_buffer.h"
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

  std::mt19937_64 random;           // whether and when devices read memory of GPUs
  std::size_t read_by_devices = 0;  // messages

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
    return std::unique_ptr<SendStream>(new Sender(streams_, opened({own_, receivers.front(), address.port}, geometry)));
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

  class Sender final : public SendStream, private GpuSender {
   public:
    Sender(QueueStreams& streams, Queue& queue) : streams_(streams), queue_(queue) {}
    std::byte* acquire(Mark) override {
      if (!lent_.empty() || queue_.sent - queue_.received >= queue_.geometry.depth) return nullptr;
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
    [[nodiscard]] GpuSender* from_gpu() override { return this; }

   private:
    struct Lent {
      Mark mark = 0;
      std::vector<Part> parts;
      std::shared_ptr<HostCopy> host;
    };

    [[nodiscard]] bool reads(const std::byte*, std::size_t) override { return streams_.random() % 3 != 0; }
    bool send_parts(Mark mark, std::span<const Part> parts, const std::shared_ptr<HostCopy>& host) override {
      if (queue_.sent + lent_.size() - queue_.received >= queue_.geometry.depth) return false;
      lent_.push_back({mark, {parts.begin(), parts.end()}, host});
      return true;
    }
    // The device reads the oldest message at any time.
    [[nodiscard]] bool is_free(Mark mark) const override {
      if (!lent_.empty() && streams_.random() % 4 == 0) {
        for (Part& part : lent_.front().parts) append(part.data, part.size);
        ++streams_.read_by_devices;
        end_oldest();
      }
      return lent_.empty() || lent_.front().mark > mark;
    }
    bool give_back(Mark mark) override {
      if (is_free(mark)) return true;
      if (lent_.front().mark != mark) return false;
      for (const Part& part : lent_.front().parts)
        if (const Result<const std::byte*> there = lent_.front().host->bring(part.data); !there.ok() || there.value() == nullptr)
          return false;
      for (const Part& part : lent_.front().parts) append(lent_.front().host->brought(part.data), part.size);
      end_oldest();
      return true;
    }
    bool take_back(Mark mark) override {
      while (!lent_.empty() && lent_.back().mark >= mark) lent_.pop_back();
      return true;
    }
    void append(const std::byte* from, std::size_t size) const { message_.insert(message_.end(), from, from + size); }
    void end_oldest() const {
      const std::size_t size = message_.size();
      queue_.messages.emplace_back(size, std::move(message_));
      ++queue_.sent;
      message_.clear();
      lent_.pop_front();
    }

    QueueStreams& streams_;
    Queue& queue_;
    mutable std::deque<Lent> lent_;
    mutable std::vector<std::byte> message_;
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
