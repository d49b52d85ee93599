#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/control/control_thread.h"
#include "src/control/network/connect_request.h"
#include "src/control/network/job_keys.h"
#include "src/control/network/listen_address.h"
#include "src/control/network/reached_addresses.h"
#include "src/net/peer_listener.h"
#include "src/net/tls/secure_stream.h"

namespace seto {

class PeerProbe;
class TcpAuthenticator;
class AcceptedPeers;

// Connects contexts of this process with contexts of processes on other machines over TCP: one listener for all, on the control
// thread. A peer proves that it has the key of a job of this process (src/net/auth_handshake.h) before any other data is
// accepted. Any thread, several pairs at once.
class TcpConnector final {
 public:
  // Created by the first call. A later call with other settings returns the same object and logs one line.
  static Result<TcpConnector*> of_process(const NetworkSettings& settings);
  // `control` outlives the result.
  static Result<std::unique_ptr<TcpConnector>> create(ControlThread& control, const NetworkSettings& settings);
  TcpConnector(const TcpConnector&) = delete;
  TcpConnector& operator=(const TcpConnector&) = delete;
  ~TcpConnector();

  // To be gathered by all ranks: process, library version and every address to try. Nothing in it is secret.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const ListenAddress& self() const { return self_; }

  // Accepts connections under this key while the result exists. Hold it as soon as the key is known and for as long as peers may
  // connect: a connection under an unknown key waits for 2 s and is then tried again by its caller. Several admissions may hold
  // the same key.
  [[nodiscard]] Admission admit(const Secret& key) { return keys_.admit(key); }

  // Both sides call it, each with the other's address and the contexts swapped; blocks until the other side does. The caller
  // dials, the other is the answerer: if exactly one of them can only dial (SETO_DIAL_ONLY), it is the caller, else the side with
  // the smaller (process, context). A thread with several peers must take the pairs in an order that all ranks share, or ranks
  // may deadlock. Failures begin "its process ..."; the calling code prepends the rank. Code::aborted: the other side has
  // declined the attempt, and the text is its reason. The returned socket is non-blocking, and bytes after the handshake are
  // unread.
  [[nodiscard]] Result<SecureStream> connect(const ConnectRequest& request);

  // The round trip to a process that has this key, in microseconds, as the kernel measures it in the handshake of a connection
  // that is then closed: the shortest of some, if the first ones are not below `near_us`. 0: unknown. The other side does nothing
  // for it.
  [[nodiscard]] std::uint32_t measure_round_trip(const ConnectRequest& request, std::uint32_t near_us);

  // This context makes no more connections in this attempt: every peer that waits for it, now or later, gets the reason as
  // Code::aborted. Needs no descriptor. The key stays admitted while the attempt is remembered, so that peers can be refused.
  void decline(AttemptId attempt, ContextId mine, const Secret& key, const Status& reason);

  // The functions below are for ControlChannels, which shares one connection between contexts.

  // Connections for that purpose are not parked but accepted and passed to this handler, on the control thread with no lock held.
  // Connections of a declined attempt are refused as usual. One handler for each purpose; an empty handler removes it, and none
  // runs after that.
  using AcceptHandler = std::function<void(const ConnectKey& caller, SecureStream socket)>;
  void set_accept_handler(std::uint8_t purpose, AcceptHandler accept_handler);

  // A request with its decoded address and the role of this side.
  struct Plan {
    ConnectRequest request;
    ListenAddress remote;
    bool calls = false;            // this side is the caller
    bool neither_accepts = false;  // both can only dial (SETO_DIAL_ONLY)
    Claim claim;
    TlsChoice tls;
  };
  [[nodiscard]] Result<Plan> plan(const ConnectRequest& request) const;
  // The caller's half of connect().
  [[nodiscard]] Result<SecureStream> dial(const Plan& plan);
  struct Reached {
    std::optional<SecureStream> socket;
    bool gone = false;   // its host answers, and no process that has the key listens at any address
    std::string report;  // every address with its result
  };
  // Tries once to reach a process whose control connection broke: its caller replaces it, the other end only asks, and gets no
  // socket. `attempt` grows with each try.
  [[nodiscard]] Reached reach_again(const Plan& plan, std::uint32_t attempt, Deadline until);
  // Whether the own end of a connection to that process lies on that path of SETO_PATHS (ConnectRequest::path). True where it
  // cannot lie there, because the two have no addresses of one family on it.
  [[nodiscard]] bool is_on_path(int fd, const ListenAddress& remote, std::uint8_t path) const;
  // For an answerer that waits: asks from time to time whether the connection will come.
  [[nodiscard]] std::unique_ptr<PeerProbe> probe(const Plan& plan);
  // Calls the listener for each attempt that is declined from now on, inside decline(). An empty listener removes it.
  using DeclineListener = std::function<void(AttemptId attempt, ContextId mine, const Status& reason)>;
  void on_decline(DeclineListener listener);
  // The reason with which this process declined an attempt, if it did.
  [[nodiscard]] std::optional<Status> declined(AttemptId attempt, ContextId mine) const;

 private:
  TcpConnector();
  [[nodiscard]] Result<SecureStream> wait_for_caller(const Plan& plan);
  [[nodiscard]] std::vector<SocketAddress> own_of_path(std::uint8_t path) const;
  void keep_path(ReachedAddresses::AlongPath& along, std::uint8_t path) const;
  [[nodiscard]] bool meets(const SocketAddress& remote, std::uint8_t path) const;

  const std::uint32_t generation_ = fork_generation();
  ListenAddress self_;
  TlsChoice tls_;
  std::string address_;
  JobKeys keys_;
  std::unique_ptr<AcceptedPeers> accepted_;
  std::unique_ptr<TcpAuthenticator> authenticator_;
  ReachedAddresses reached_;
  std::mutex listener_mutex_;
  DeclineListener decline_listener_;
};

}  // namespace seto
