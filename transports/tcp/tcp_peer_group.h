#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transports/tcp/bulletin.h"
#include "transports/tcp/domain.h"
#include "transports/tcp/inbox.h"
#include "transports/transport.h"

namespace seto::tcp {

struct CircleSetup {
  std::uint32_t own = 0;
  std::uint64_t number = 0;                  // of the communicator: the same at all members, no other's
  std::vector<std::shared_ptr<Link>> links;  // by member; null: not reached by this transport
  Domain* domain = nullptr;
  Herald* herald = nullptr;  // outlives the circle
  const char* called = "member";
};

// Streams as frames on the links of a context. A message is whole when all its bytes have come, over whichever sockets; streams
// have credit of their own, so none waits for another.
class TcpCircle final : public Circle, private Sink {
 public:
  static Result<std::unique_ptr<TcpCircle>> create(CircleSetup setup);
  ~TcpCircle() override;

  [[nodiscard]] std::uint32_t members() const override { return static_cast<std::uint32_t>(setup_.links.size()); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override;
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override;
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override;
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override;
  void begin(const Note& note) override;
  void disregard(std::uint64_t operation) override { disregarded_[operation % kMostOperations] = operation; }
  void complete(std::uint64_t operation) override;
  [[nodiscard]] std::uint64_t window() const override { return kWindow; }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override;
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override;
  void leave(Fate fate) override;
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override;
  [[nodiscard]] bool silent(std::uint32_t member) const override;
  void explain(std::string_view why) override { bulletin_.explain(why); }
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override;
  [[nodiscard]] Status failure() const override;
  [[nodiscard]] bool suspects() const override { return !disagreement_.reason.ok(); }

  // For the plane that carries bulletins. Any thread.
  [[nodiscard]] std::string bulletin() const { return bulletin_.encoded(); }
  Status renew(std::uint32_t member, std::string_view bulletin);
  // It keeps none any more: it has left, unless it said how.
  void lose(std::uint32_t member);

 private:
  friend class TcpSender;
  friend class TcpReceiver;
  friend class TcpPairSender;
  friend class TcpPairReceiver;
  static constexpr std::uint64_t kWindow = InStream::kUnderWay;

  // What a member's frames say, and what this one owes it.
  struct Peer {
    std::unordered_map<std::uint32_t, std::unique_ptr<InStream>> streams;        // by port and group
    std::unordered_map<std::uint32_t, std::array<Mark, kMostOperations>> taken;  // of this member's streams, by operation
    std::array<std::uint32_t, kMostOperations> unread{};  // messages that came for an operation and were not released
    std::unique_ptr<InPair> pair;
    std::uint64_t pair_told = 0;    // bytes of messages from it that it knows to be let go
    std::uint64_t pair_opened = 0;  // the last long message to it that it has begun to take
    std::uint64_t pair_taken = 0;   // bytes of messages to it that it has let go
    std::map<std::uint64_t, std::array<std::byte, kLetterSize>> refusals;  // letters that are being read, by message
    std::map<std::uint64_t, Letter> pair_refused;                          // messages to it, and what it expected instead
    std::uint64_t done = 0;                                                // operations, as its frames say
    std::uint64_t asked_from = 0;  // it is to hear when this one has completed that operation; 0: none
    std::uint64_t asked_to = 0;    // and each one after it up to this
    std::uint64_t left = 0;        // the frame that said that it has; 0: none yet
  };
  // A header that disagrees, until the notes have told more.
  struct Disagreement {
    std::uint32_t member = 0;
    std::uint64_t operation = 0;
    std::uint64_t since_ns = 0;
    bool told = false;  // the note was here when somebody looked
    Status reason;
  };

  explicit TcpCircle(CircleSetup setup);

  Result<std::byte*> place(std::uint32_t member, const Frame& frame) override;
  Status arrived(std::uint32_t member, const Frame& frame, std::byte* at) override;

  static std::uint32_t key_of(std::uint16_t port, std::uint8_t group) { return std::uint32_t{port} << 8 | group; }
  InStream& stream_of(std::uint32_t member, std::uint32_t key);
  [[nodiscard]] Frame frame_of(FrameKind kind) const;
  // Under the domain's lock, the token held: what was queued goes as far as it can.
  void push_out(Link& link);
  void asked_for_progress(Peer& peer, std::uint32_t member, std::uint64_t operation);
  void tell_progress(std::uint32_t member);
  void forget(std::uint32_t member, std::uint64_t operation);
  void give_pair_credit(std::uint32_t member);  // queues
  [[nodiscard]] Link* link(std::uint32_t member) const { return setup_.links[member].get(); }
  [[nodiscard]] std::uint64_t done_by(std::uint32_t member) const;
  void fail(Status reason) {
    if (failure_.ok()) failure_ = std::move(reason);
  }
  // A header of that member says that it makes another call: not yet a failure, for its note will say which.
  void disagree(std::uint32_t member, std::uint64_t operation, Status reason);
  // A message of that member is due which a broken link did not bring. If it has not come as far itself, others will say why.
  void miss(std::uint32_t member, std::uint64_t operation);
  // Messages came for that operation which nobody here has read, and it has ended well: that member makes another call.
  void look_for_unread(std::uint64_t operation);

  CircleSetup setup_;
  Bulletin bulletin_;
  std::vector<std::unique_ptr<Bulletin>> copies_;  // by member
  std::vector<Peer> peers_;
  std::uint64_t done_ = 0;
  std::array<std::uint64_t, kMostOperations> disregarded_{};  // operations that did not end well here
  Status failure_;
  mutable Disagreement disagreement_;
};

}  // namespace seto::tcp
