#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/bootstrap/rendezvous_address.h"
#include "src/net/secret.h"
#include "src/net/tls/auth_channel.h"

namespace seto {

// The purpose of a rendezvous connection, as its membership claim states it.
enum class RendezvousPurpose : std::uint8_t { rendezvous = 1, result_tree };

// The client side of a rendezvous connection. It tries the local socket if that name exists, else every address, best first; it
// starts the next attempt when one has failed or takes too long, and keeps the first that authenticates. It blocks only while the
// queue of the local socket is full.
// The Dialer of src/control does the same for TCP alone. Both stay, because this one also tries a local socket and keeps no
// descriptor in reserve.
class OutgoingConnection final {
 public:
  // Time between the starts of two attempts. It exceeds a round trip within a site, so the best address usually wins.
  static constexpr std::uint64_t kStaggerMs = 50;

  OutgoingConnection(RendezvousAddress address, Secret key, Claim claim, const TlsChoice& tls = {});

  // Before begin(): TLS never follows. For a question to a server whose certificates and SETO_TLS may be those of another job.
  void stay_plain() { plain_ = true; }
  void begin(Deadline local_until);
  // Adds the sockets to wait for.
  void prepare(std::vector<pollfd>& entries) const;
  // The time until the next address is due, at most.
  [[nodiscard]] int wait_ms() const;
  void advance();

  [[nodiscard]] bool over() const { return member_.valid() || ended_ == attempts_.size(); }
  // A process listened at an address, so the failure is more than a server that has not started yet.
  [[nodiscard]] bool reached() const { return reached_; }
  // A peer closed the connection without a reason, as a server with too many connections does.
  [[nodiscard]] bool hung_up() const { return hung_up_; }
  // A peer has proved that it has the key, whatever it sent then.
  [[nodiscard]] bool proven() const;
  // That peer has rejected the connection.
  [[nodiscard]] bool refused() const;
  // A server of this library has answered that it has no such key.
  [[nodiscard]] bool key_unknown() const;
  // Once over: the socket, or a failure with the reason for each address. Before that: a failure with the reasons known so far.
  [[nodiscard]] Result<SecureStream> take();

 private:
  enum class Stage : std::uint8_t { waiting, connecting, proving, ended };
  struct Attempt {
    std::optional<SocketAddress> address;  // empty: the local socket
    Stage stage = Stage::waiting;
    PrivateFd fd;                          // until it is connected
    std::optional<CallerChannel> channel;  // from then on
    Status reason;
    bool answered = false;  // the peer sent the reason
  };

  void start(Attempt& attempt);
  void prove(Attempt& attempt, PrivateFd fd);
  void advance(Attempt& attempt);
  void end(Attempt& attempt, Status reason);
  void start_due();

  RendezvousAddress address_;
  Secret key_;
  Claim claim_;
  TlsChoice tls_;
  bool plain_ = false;
  std::vector<Attempt> attempts_;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  Deadline next_ = Deadline::after_ms(0);
  SecureStream member_;
  bool reached_ = false;
  bool hung_up_ = false;
};

}  // namespace seto
