#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "transports/rdma/connect/devices.h"
#include "transports/rdma/connect/managed_path.h"
#include "transports/rdma/connect/messages.h"
#include "transports/rdma/link/ring_channel.h"

namespace seto::rdma {

// The ports that a channel uses at both ends.
struct PortPair {
  PortName own;
  PortName peer;
};

// Sets up a channel between two contexts, by messages over the control plane: one end selects, both make their halves, and a
// first message in both directions proves the path before it is used. If that fails, the next candidate is tried. Neither end
// waits in a call: the owner passes messages on, and calls advance() until the set-up has ended. Where both ends have a
// connection manager, the queue pairs get their path from it, and everything else as before.
class ChannelSetUp final {
 public:
  enum class Role : std::uint8_t { selects, follows };  // different at both ends

  struct Setup {
    Role role = Role::selects;
    Devices* devices = nullptr;             // outlives the set-up, and the channel
    std::string peer;                       // as the user knows it
    std::uint32_t interface = 0;            // see SelectionInput
    std::function<std::uint32_t()> random;  // 24 bits, for packet numbers
    std::uint64_t probe_ms = 3'000;         // a path that carries nothing for so long is given up
    std::size_t most_candidates = 8;        // that are tried
    std::vector<PortPair> beside;           // ports of channels to the peer that work: the selecting end takes others
    std::uint64_t (*clock)() = monotonic_ns;
    std::uint64_t ring_size = std::uint64_t{256} << 10;
    std::uint32_t records = 128;
    std::uint32_t most_mtu = ~0U;                            // of a packet; a port may have less
    QueuePairPath path;                                      // how packets are marked and repeated; the candidate sets the rest
    ConnectionManager* manager = nullptr;                    // null: none is wanted, or there is none. It outlives the set-up
    std::uint64_t manager_ms = 5'000;                        // a call of the manager that has no answer for so long is given up
    std::function<bool(int descriptor, bool begins)> watch;  // advance() is called when it is readable; may be empty
  };
  explicit ChannelSetUp(Setup setup);

  // A message of the peer. A failure: it is malformed, or not its turn; the set-up has ended.
  Status hear(std::string_view message);
  // Messages for the peer, in order.
  [[nodiscard]] std::optional<std::string> next_message();
  // Goes on as far as possible. True: the set-up has ended, and take() or why() tells how. Messages may still wait to be sent.
  bool advance();

  // The channel; null: why() tells the reason. At most one call, after the end.
  [[nodiscard]] std::unique_ptr<RingChannel> take() { return std::move(channel_); }
  [[nodiscard]] const Status& why() const { return why_; }
  // The selecting end: the candidate in use, and why earlier ones were not.
  [[nodiscard]] const Candidate& candidate() const { return candidates_.at(attempt_ - 1); }
  [[nodiscard]] const std::vector<std::string>& failed() const { return failed_; }
  // Both ends of the channel as far as this end knows them: the selecting one has told no name of its port.
  [[nodiscard]] const PortEnd& own_end() const { return own_end_; }
  [[nodiscard]] const PortEnd& peer_end() const { return peer_end_; }
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }
  // The path of the channel is from the connection manager.
  [[nodiscard]] bool by_manager() const { return by_manager_; }

 private:
  enum class State : std::uint8_t { waiting, calling, probing, done, failed };
  // A call without an answer takes manager_ms: so many end before the whole set-up is given up (LinkRails), which then says why.
  static constexpr std::size_t kMostCalls = 4;

  void hear_message(const Offer& offer);
  void hear_message(const Proposal& proposal);
  void hear_message(const Acceptance& acceptance);
  void hear_message(const Refusal& refusal);
  void hear_message(const Decision& decision);
  void send(const SetUpMessage& message) { outgoing_.push_back(encode(message)); }
  Status make_channel(const PortEnd& end);
  Status connect(const ChannelAddress& peer);
  [[nodiscard]] Result<ManagedPath::Setup> managed(const ChannelAddress& peer);
  Status listen(const ChannelAddress& peer);
  Status call(const Acceptance& acceptance);
  // False: the attempt has failed.
  bool advance_manager();
  void begin_probe();
  void refuse(const Status& why);
  void drop_equal_calls();
  void drop_channel();
  void try_next();
  void attempt_failed(std::string_view why);
  void end_with(Status reason);

  Setup setup_;
  State state_ = State::waiting;
  SelectionInput input_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> failed_;
  std::uint32_t attempt_ = 0;  // counts from 1
  std::unique_ptr<RingChannel> channel_;
  PortEnd own_end_;
  PortEnd peer_end_;
  std::uint32_t mtu_ = 0;
  bool by_manager_ = false;
  Token token_{};                         // of the attempt, with by_manager_
  std::unique_ptr<ManagedPath> managed_;  // while the attempt needs it
  std::uint64_t call_until_ns_ = 0;
  std::uint64_t probe_until_ns_ = 0;
  std::deque<std::string> outgoing_;
  Status why_;
};

}  // namespace seto::rdma
