#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/fork.h"
#include "src/base/wakeup.h"
#include "src/base/work_threads.h"
#include "src/control/network/tcp_connector.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {

// Opens the broken paths of one link again (decision 24). The end that dialed its sockets dials again, after pauses that grow;
// the other end answers on the control thread. The claim of a caller names path and attempt, so it is authenticated with them,
// and the answerer says first what it has heard. Any thread.
class Redialer final : public PathDialer, public std::enable_shared_from_this<Redialer> {
 public:
  struct Setup {
    AttemptId attempt = 0;
    Secret key;
    ContextId context = 0;
    ContextId peer = 0;
    std::string address;     // TcpConnector::address() of the peer
    bool same_site = false;  // as in AttemptMember
    TcpConnector* connector = nullptr;
    std::weak_ptr<Domain> domain;
    std::shared_ptr<WorkThreads> threads;  // that dial
    std::shared_ptr<const Wakeup> wakeup;  // of the own context
  };
  // A link at its answerer: its own context, and the process and the context of the peer.
  using Key = std::tuple<AttemptId, ContextId, Token, ContextId>;
  static Result<std::shared_ptr<Redialer>> create(Setup setup);
  Redialer(Setup setup, const TcpConnector::Plan& plan);
  ~Redialer() override;

  // The link whose dialer this is. The caller holds the lock of the domain.
  void serve(const std::shared_ptr<Link>& link);
  // It has its sockets. Likewise.
  void sockets_opened(Link& link);

  void paths_broke() override;
  void give_up() override { stop_.store(true, std::memory_order_release); }

  // Whether a caller with the purpose of late data continues a link. Then accept() takes its socket.
  [[nodiscard]] static bool continues(const Claim& claim) { return claim.index >= (1U << kPathBits); }
  static void accept(const ConnectKey& caller, SecureStream socket);

 private:
  static constexpr std::uint32_t kPathBits = 8;  // of the index in a claim; the others are the number of the attempt

  [[nodiscard]] Key key() const { return {setup_.attempt, setup_.context, process_, setup_.peer}; }

  void answer(std::uint32_t path, std::uint32_t attempt, SecureStream socket);
  void dial();
  // Broken paths; empty: the link needs none, and this work ends.
  [[nodiscard]] std::vector<std::uint32_t> wanted();
  [[nodiscard]] Status open_path(std::uint32_t path);
  void choose_path(std::uint32_t path, ConnectRequest& request) const;
  void give_up_place(std::uint32_t path) const;
  void leave_other_paths(Link& link) const;
  [[nodiscard]] static Status peer_has_no_link(Link& link);
  void pause();

  const Setup setup_;
  const bool dials_;
  const ListenAddress remote_;  // of the peer
  const Token process_;         // likewise
  const std::uint32_t generation_ = fork_generation();
  Admission admission_;
  std::atomic<bool> stop_{false};
  // The domain's lock covers these.
  std::weak_ptr<Link> link_;
  bool served_ = false;
  bool dialing_ = false;
  // The thread that dials changes these.
  std::uint32_t attempts_ = 0;
  std::uint32_t pause_ms_ = 0;
  bool nothing_moves_ = false;      // of the link, when the paths of this round were chosen
  bool failed_ = false;             // the last round opened nothing
  std::uint64_t succeeded_ns_ = 0;  // 0: no round did
};

}  // namespace seto::tcp
