#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transports/message_status.h"
#include "transports/tcp/link/domain.h"
#include "transports/tcp/streams/inbox.h"
#include "transports/transport.h"

namespace seto::tcp {

using seto::StatusExchange;

struct PeerGroupSetup {
  std::uint32_t own = 0;
  std::uint64_t number = 0;                  // identifies the communicator; equal at all members
  std::vector<std::shared_ptr<Link>> links;  // by member; null: not reached by this transport
  Domain* domain = nullptr;
  StatusExchange* exchange = nullptr;  // outlives the group
  std::uint32_t ports = 1U << 16;      // of streams: 0 ... ports - 1
  const char* called = "member";
};

// Streams as frames on the connections of a context. A message is complete when all its bytes have arrived, over whichever
// sockets. Each stream has its own credit, so no stream waits for another.
class TcpPeerGroup final : public PeerGroup, private Sink, private StatusDataPath {
 public:
  static Result<std::unique_ptr<TcpPeerGroup>> create(PeerGroupSetup setup);
  ~TcpPeerGroup() override;

  [[nodiscard]] std::uint32_t members() const override { return static_cast<std::uint32_t>(setup_.links.size()); }
  [[nodiscard]] PeerStatus& status() override { return status_; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  void disregard(std::uint64_t operation) override {
    std::uint64_t& slot = disregarded_[operation % kMostOperations];
    if (slot != operation) forgotten_ = std::max(forgotten_, slot);
    slot = operation;
  }
  void complete(std::uint64_t operation) override;
  [[nodiscard]] Status failure() const override;
  [[nodiscard]] bool suspects() const override { return !disagreement_.reason.ok(); }

  // For the control plane: see MessageStatus. Any thread.
  [[nodiscard]] std::string record() const { return status_.record(); }
  [[nodiscard]] std::uint64_t completed() const { return status_.known_completed(setup_.own); }
  [[nodiscard]] std::uint64_t renewals(std::uint32_t member) const { return status_.renewals(member); }
  Status renew(std::uint32_t member, std::string_view record);
  void lose(std::uint32_t member);

 private:
  friend class TcpSender;
  friend class TcpReceiver;
  friend class TcpPairSender;
  friend class TcpPairReceiver;

  // The report of a receiver about one operation of a stream: it has taken the slices below `taken`, and the sender may send
  // those below `limit`.
  struct Credit {
    Mark taken = 0;
    Mark limit = 0;
  };
  struct StreamCredit {
    std::uint64_t window = kStreamCredit;              // bytes of each operation that need no credit frame
    std::array<Credit, kMostOperations> operations{};  // by operation
  };
  // State of the data path to and from one peer.
  struct Peer {
    std::unordered_map<std::uint32_t, std::unique_ptr<InStream>> streams;  // by port and group
    std::unordered_map<std::uint32_t, StreamCredit> credit;                // for this member's streams, by port and group
    std::array<std::uint32_t, kMostOperations> unread{};  // messages that arrived for an operation and were not released
    std::unique_ptr<InPair> pair;
    std::uint64_t pair_told = 0;              // credit told to it: charges of its pieces that were released here
    std::uint64_t pair_opened = 0;            // the last long message to it that it has begun to receive
    std::uint64_t pair_taken = 0;             // credit that it told: charges of pieces that it has released
    std::uint64_t pair_window = kPairCredit;  // charges of pieces that it accepts beyond those
    std::uint64_t reserved = 0;               // of the domain's budget, for windows of its data
    std::map<std::uint64_t, std::array<std::byte, kMessageHeaderSize>> refusals;  // headers that are being read, by message
    std::map<std::uint64_t, MessageHeader> pair_refused;  // messages to it that it refused, with the header it expected
    std::size_t charged = 0;                              // to its share, for entries of these tables that its frames made
    std::uint64_t done = 0;                               // operations that it has completed, from its frames
    std::uint64_t asked_from = 0;  // it asked to be told when this member has completed that operation; 0: none
    std::uint64_t asked_to = 0;    // and each later operation up to this one
    std::uint64_t left = 0;        // sequence number of its departure frame; 0: none yet
    bool departure_noted = false;  // its status record says that it left
    bool left_silent = false;      // it left before it had sent anything over this link, so that no such frame comes
  };
  // A header that does not fit this member's call. Reported once the notes can explain it.
  struct Disagreement {
    std::uint32_t member = 0;
    std::uint64_t operation = 0;
    std::uint64_t since_ns = 0;
    bool told = false;  // the note was available at the last look
    Status reason;
  };

  explicit TcpPeerGroup(PeerGroupSetup setup);

  Result<std::byte*> place(std::uint32_t member, const Frame& frame) override;
  Status arrived(std::uint32_t member, const Frame& frame, std::byte* at) override;
  void unplace(std::uint32_t member, const Frame& frame, std::byte* at) override;
  void pipe_grew(std::uint32_t member) override;
  void send_departure() override;
  void note_departure(std::uint32_t member);
  [[nodiscard]] bool all_arrived(std::uint32_t member) const override;

  // Whether a plan of this communicator can have that stream: a peer can make this end remember no others.
  [[nodiscard]] bool has_stream(std::uint16_t port, std::uint8_t group) const {
    return port < setup_.ports && group <= kMostGroups;
  }
  [[nodiscard]] Status check_address(const StreamAddress& address) const;
  static std::uint32_t key_of(std::uint16_t port, std::uint8_t group) { return std::uint32_t{port} << 8 | group; }
  static StreamAddress address_in(std::uint32_t sender, std::uint32_t key) {
    return {sender, static_cast<std::uint8_t>(key & 0xff), static_cast<std::uint16_t>(key >> 8)};
  }
  InStream& stream_of(std::uint32_t member, std::uint32_t key);
  [[nodiscard]] Frame frame_of(FrameKind kind) const;
  // Writes queued frames as far as the sockets allow. The caller holds the token and the domain's lock.
  void push_out(Link& link);
  void asked_for_progress(Peer& peer, std::uint32_t member, std::uint64_t operation);
  void tell_progress(std::uint32_t member);
  // A sender waits until that member has completed the operation. `asked`: the last one for which it asked.
  void await_progress(std::uint32_t member, std::uint64_t operation, std::uint64_t& asked);
  void forget(std::uint32_t member, std::uint64_t operation);
  void give_pair_credit(std::uint32_t member);  // queues a frame
  InStream& open_stream(const StreamAddress& address, const StreamGeometry& geometry);
  // Lets a far sender be further ahead, as far as the budget goes, and queues a frame that tells it. The caller holds the lock.
  void widen_stream(InStream& stream, const StreamAddress& address, std::uint64_t wanted);
  void widen_pair(std::uint32_t member);
  std::uint64_t reserve(std::uint32_t member, std::uint64_t wanted);
  Status hear_window(std::uint32_t member, const Frame& frame);
  // Bytes of an entry of a table, with the pointers of its node and the heading of its allocation.
  static constexpr std::size_t kNode = 48;
  static constexpr std::size_t kCreditEntry = sizeof(std::pair<const std::uint32_t, StreamCredit>) + kNode;
  static constexpr std::size_t kRefusalEntry = sizeof(std::pair<const std::uint64_t, MessageHeader>) + kNode;
  // An entry that a frame of the member makes; failure: its share is used up.
  Status charge(std::uint32_t member, std::size_t bytes);
  void discharge(std::uint32_t member, std::size_t bytes);
  Result<StreamCredit*> credit_of(std::uint32_t member, std::uint32_t key);
  [[nodiscard]] Link* link(std::uint32_t member) const { return setup_.links[member].get(); }
  [[nodiscard]] std::uint64_t done_by(std::uint32_t member) const;
  void fail(Status reason) {
    if (failure_.ok()) failure_ = std::move(reason);
  }
  // A header of that member shows that it makes another call. Not a failure yet: the member's note will tell which call.
  void disagree(std::uint32_t member, std::uint64_t operation, Status reason);
  // A broken connection did not deliver an expected message of that member. A failure only if the member has completed the
  // operation; otherwise the reason is reported elsewhere.
  void miss(std::uint32_t member, std::uint64_t operation);
  // The operation ended well here, but messages for it were not read: their sender makes another call.
  void look_for_unread(std::uint64_t operation);

  PeerGroupSetup setup_;
  MessageStatus status_;
  std::vector<Peer> peers_;
  std::uint64_t done_ = 0;
  std::array<std::uint64_t, kMostOperations> disregarded_{};  // operations that did not end well here
  // The last one that is no longer among them. Data may be later than that: it waits until its connection is open.
  std::uint64_t forgotten_ = 0;
  Status failure_;
  mutable Disagreement disagreement_;
};

}  // namespace seto::tcp
