#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/network/tcp_connector.h"
#include "src/control/channel/tcp_control_channel.h"
#include "src/control/channel/control_channels.h"

namespace seto {

// The wires of a process. Of two processes the one whose context calls (FrontDoor::meet) connects, if there is no wire yet, and
// says on it which contexts mean to share it (join); the other end agrees once its context asks for it (joined). So both always
// mean the same wire, also while an old one is being closed.
class WireHub final : public Wires, private WireKeeper {
 public:
  static Result<std::unique_ptr<WireHub>> create(ControlThread& control, FrontDoor& door, const LivenessSettings& settings);
  WireHub(const WireHub&) = delete;
  WireHub& operator=(const WireHub&) = delete;
  ~WireHub() override;

  [[nodiscard]] Result<std::shared_ptr<Wire>> meet(const Visit& visit) override;
  [[nodiscard]] Mailboxes& mailboxes() override { return mailboxes_; }

 private:
  // Of whom, and under which key; the contexts and the attempt in which they share.
  struct Union {
    WirePeer peer;
    ContextId caller = 0;
    ContextId answerer = 0;
    AttemptId attempt = 0;
    auto operator<=>(const Union&) const = default;
  };
  // A join that was said, until the other end agrees.
  struct Proposal {
    enum class Answer : std::uint8_t { none, joined, refused } answer = Answer::none;
    Status reason;
  };
  // To a process that this one calls.
  struct Line {
    std::weak_ptr<TcpWire> wire;
    bool dialing = false;
  };
  struct Lingering {
    std::uint64_t id = 0;
    PrivateFd socket;
    Watch watch;
  };
  struct Dialed {
    std::shared_ptr<TcpWire> wire;
    bool fresh = false;  // the handshake itself said what a join says
  };

  WireHub(ControlThread& control, FrontDoor& door) : control_(control), door_(door) {}
  [[nodiscard]] static Union union_of(const FrontDoor::Plan& plan);

  // WireKeeper
  [[nodiscard]] ControlThread& control() override { return control_; }
  [[nodiscard]] const Pulse& pulse() override { return *pulse_; }
  [[nodiscard]] Mailboxes& mailboxes_of_wires() override { return mailboxes_; }
  [[nodiscard]] Deaths& deaths() override { return deaths_; }
  void needs_attention(std::weak_ptr<TcpWire> wire) override;
  void negotiate(const std::shared_ptr<TcpWire>& wire, const WireFrame& frame) override;
  void ended(const TcpWire& wire) override;
  void made() override;
  void gone() override;
  void linger(PrivateFd socket) override;

  // Who calls.
  [[nodiscard]] Result<std::shared_ptr<Wire>> call(const FrontDoor::Plan& plan);
  [[nodiscard]] Result<Dialed> wire_for(const FrontDoor::Plan& plan);
  [[nodiscard]] Result<bool> propose(const FrontDoor::Plan& plan, const Dialed& dialed);
  [[nodiscard]] Result<std::shared_ptr<TcpWire>> connect(const FrontDoor::Plan& plan);
  // Who answers.
  [[nodiscard]] Result<std::shared_ptr<Wire>> answer(const FrontDoor::Plan& plan);
  void welcome(const VisitKey& caller, PrivateFd socket);
  void hear_join(const std::shared_ptr<TcpWire>& wire, const Union& which);
  void decline(AttemptId attempt, ContextId mine, const Status& reason);
  static void say(TcpWire& wire, WireFrameKind kind, const Union& which, const Status& reason = {});

  void enter(const std::shared_ptr<TcpWire>& wire);
  void attend();
  void beat();

  ControlThread& control_;
  FrontDoor& door_;
  const std::uint32_t generation_ = fork_generation();
  Mailboxes mailboxes_;
  Deaths deaths_;
  std::unique_ptr<Pulse> pulse_;
  PrivateFd call_;  // an eventfd: something waits for attend()
  Watch called_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<WirePeer, Line> lines_;
  std::map<Union, Proposal> proposals_;                 // of this side
  std::map<Union, std::shared_ptr<TcpWire>> proposed_;  // of others, until a context here asks
  std::vector<std::weak_ptr<TcpWire>> wires_;
  std::vector<std::weak_ptr<TcpWire>> waiting_;  // for attend()
  std::size_t alive_ = 0;                        // wires that may still call
  std::uint64_t next_id_ = 1;
  std::deque<Lingering> lingering_;
};

}  // namespace seto
