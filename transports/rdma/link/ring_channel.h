#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/byte_pipe.h"
#include "transports/rdma/link/channel_address.h"
#include "transports/rdma/link/completions.h"
#include "transports/rdma/link/registered_memory.h"
#include "transports/rdma/link/ring.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

using RemotePlace = BytePipe::RemotePlace;

// Records in order from this end to the peer, and back, over one queue pair. The sender copies a record into its staging ring and
// writes it into the ring at the peer, at the same position, with an immediate value; the peer reads it there. The immediate
// value tells how much of the other direction was released; a write of no bytes tells only that. Long messages need no copy: they
// are written into a place that the peer has told, and a record behind them says that they are there.
//
// Nothing is read from the ring before its completion, and a header is copied before it is checked: the peer can write to the
// ring at any time. No call blocks. One thread at a time, which also polls the completions.
class RingChannel final : private CompletionSink {
 public:
  struct Setup {
    VerbsDevice* device = nullptr;  // outlives the channel, as do the completions
    Completions* completions = nullptr;
    std::string peer;  // as the user knows it, in texts
    std::uint64_t ring_size = std::uint64_t{256} << 10;
    std::uint32_t records = 128;  // on their way in one direction
    std::uint32_t sequence = 0;   // the first packet number; random, so that packets of an earlier connection are refused
    QueuePairPath path;           // own half: port, partition, GID
    std::uint32_t mtu = 1'024;
    std::uint16_t lid = 0;
    Gid gid;
  };
  static Result<std::unique_ptr<RingChannel>> create(Setup setup);
  RingChannel(const RingChannel&) = delete;
  RingChannel& operator=(const RingChannel&) = delete;
  ~RingChannel() override;

  // For the peer, which calls connect() with it. This end can be written to from then on.
  [[nodiscard]] ChannelAddress address() const;
  Status connect(const ChannelAddress& peer);  // or over a path from elsewhere, that repeats packets as `Setup` says:
  Status connect(const ChannelAddress& peer, QueuePairPath path);

  // The longest record.
  [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }
  // Bytes of a record. With a key they are in memory that is registered on this device, which reads them where they lie: they
  // stay as they are, and registered, until written(). Without one they are copied.
  struct Part {
    std::span<const std::byte> bytes;
    std::optional<std::uint32_t> key;
  };
  // The record consists of both parts; flush() hands it to the device. Absent: there is no room now, or the channel is broken.
  [[nodiscard]] std::optional<std::uint64_t> send(const Part& head, const Part& body);
  [[nodiscard]] bool send(std::span<const std::byte> head, std::span<const std::byte> body);
  // Writes memory that is registered on this device, of at most kMostWritten bytes, to the place, and sends a record behind it,
  // unless it is empty. The peer may read the place once it has a record that was sent later. The source stays as it is, and
  // registered, until written(ticket). Absent: there is no room now for both, or the channel is broken.
  [[nodiscard]] std::optional<std::uint64_t> write(std::span<const std::byte> source, std::uint32_t local_key, RemotePlace place,
                                                   std::span<const std::byte> record = {});
  [[nodiscard]] bool written(std::uint64_t ticket) const { return completed_requests_ > ticket; }
  static constexpr std::size_t kMostWritten = std::size_t{8} << 20;
  // Hands over what was sent and written, with one doorbell, and tells the peer what was released if that is due. To be called
  // after the completions were polled, too.
  void flush();
  // Asks the device to report everything that was handed over, although no more may follow.
  void settle();
  // Everything that was sent is in the memory of the peer.
  [[nodiscard]] bool delivered() const { return completed_requests_ == posted_requests_ && batch_.empty(); }

  // The oldest record that has arrived and was not released; empty: none.
  [[nodiscard]] std::span<const std::byte> front() const;
  void release();

  // A first message has come from the peer, and one of this end has reached it: the path carries data both ways.
  [[nodiscard]] bool proved() const { return heard_ && completed_requests_ > 0; }
  // Sends that message.
  void probe() { tell_next_ = report_next_ = true; }

  // The channel carries nothing any more; what has arrived can still be read.
  [[nodiscard]] bool broken() const { return !why_.ok(); }
  [[nodiscard]] const Status& why() const { return why_; }
  void break_with(const Status& reason);
  // Breaks it, and ends its queue pair: the device reads no memory of its users from then on. A queue pair that has only failed
  // may still be about to.
  void stop(const Status& reason);

  // 0: there is none any more.
  [[nodiscard]] std::uint32_t queue_pair() const { return pair_ == nullptr ? 0 : pair_->number(); }
  // Records and writes that may be under way at once.
  [[nodiscard]] std::size_t most_requests() const { return sends_; }

 private:
  static constexpr std::uint32_t kSignalEvery = 16;  // requests
  static constexpr std::size_t kMostBatch = 16;      // requests of one doorbell
  static constexpr std::uint32_t kInline = 188;      // bytes that are asked for; a header and a short payload

  explicit RingChannel(Setup setup);
  [[nodiscard]] static QueuePairSize queue_size(const Setup& setup, std::uint32_t records_of_peer);
  Status allocate();
  Status post_receives(std::uint32_t count);
  void completed(const Completion& completion) override;
  void heard(const Completion& completion);
  void gather(SendRequest& request, const Part& part, std::byte* copy) const;
  std::uint64_t add_record(std::uint64_t start, const Part& head, const Part& body);
  void add(SendRequest request, std::uint64_t end);
  [[nodiscard]] bool ready_for(std::size_t requests) const;
  void tell();
  void post_batch();
  [[nodiscard]] std::size_t room() const { return sends_ - static_cast<std::size_t>(posted_requests_ - completed_requests_); }

  Setup setup_;
  const std::size_t most_bytes_;
  const std::uint32_t sends_;         // requests that the send queue holds
  const std::uint32_t receives_;      // requests that are always posted
  const std::uint32_t signal_every_;  // requests: with fewer that are unreported, a record finds room in the queue
  bool reserved_ = false;
  std::unique_ptr<RegisteredMemory> staging_;
  std::unique_ptr<RegisteredMemory> ring_;
  std::unique_ptr<QueuePair> pair_;
  SendRing out_;
  ReceiveRing in_;
  ChannelAddress peer_;
  bool connected_ = false;
  bool heard_ = false;
  bool tell_next_ = false;    // a message of no bytes is wanted
  bool report_next_ = false;  // the next request is signalled
  bool receives_flushed_ = false;
  std::uint64_t reported_end_ = 0;     // where the records of the newest signalled request end
  std::vector<SendRequest> batch_;     // not yet handed over
  std::uint64_t posted_requests_ = 0;  // with those of the batch
  std::uint64_t completed_requests_ = 0;
  std::uint64_t signalled_requests_ = 0;  // up to this one, a completion will tell
  std::vector<std::uint64_t> ends_;       // by request modulo sends_: where the records up to it end
  Status why_;
};

}  // namespace seto::rdma
