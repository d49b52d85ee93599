#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/address.h"
#include "src/net/secret.h"
#include "src/net/tls/auth_channel.h"

namespace seto {

// How long a failure is retried that may be temporary: an unknown key, a full queue of unauthenticated connections, a missing
// route.
inline constexpr std::uint64_t kRetryMs = 10'000;

// The delay between the starts of two addresses; the next one starts at once if no other is under way.
inline constexpr int kDialStaggerMs = 50;
// The same before addresses of other paths than the one that is wanted: a round trip and a handshake are over by then.
inline constexpr int kOtherPathMs = 1'000;

// Tries to reach a process at all of its addresses, best first. The first connection that authenticates is used. Not thread safe.
class Dialer final {
 public:
  struct Target {
    std::vector<SocketAddress> addresses;
    Secret key;
    Claim claim;
    TlsChoice tls;
    bool plain = false;                           // data within a stated site: encrypted only with TlsMode::always
    std::size_t of_path = 0;                      // so many of the first addresses are on the path that is wanted, and
    std::vector<SocketAddress> own_of_path = {};  // these are the own ones there: other addresses are tried a second later
    bool short_segments = false;                  // as in ConnectRequest
  };
  explicit Dialer(const Target& target);

  // Continues for at most wait_ms. Returns the accepted connection, nothing yet, or a failure when all addresses have failed.
  [[nodiscard]] Result<std::optional<SecureStream>> advance(int wait_ms);

  // The address at which the process authenticated.
  [[nodiscard]] const std::optional<SocketAddress>& found() const { return found_; }

  // After a failure: a member of the job has refused the connection; a retry is useless.
  [[nodiscard]] bool refused() const { return refused_; }
  // Every address refused the connection or has no route.
  [[nodiscard]] bool none_listening() const;
  // The host answers at some address, and no process listens there.
  [[nodiscard]] bool some_refused() const;
  // A process answered and did not know the key.
  [[nodiscard]] bool key_unknown() const;
  // A process of the job answered, and TLS with it is impossible: only one end has certificates, or one is not accepted.
  [[nodiscard]] bool tls_failed() const;
  // The failure at some address may be temporary.
  [[nodiscard]] bool may_change() const;

  // While attempts are under way: some address has failed, and no address has accepted a connection.
  [[nodiscard]] bool hopeless() const;
  // Every address with its result, as text.
  [[nodiscard]] std::string report() const;

 private:
  struct Attempt {
    SocketAddress address{};
    std::optional<SocketAddress> from;     // the own address on the path that is wanted
    PrivateFd fd;                          // until it is connected
    std::optional<CallerChannel> channel;  // from then on
    bool started = false;
    bool ended = false;
    bool not_listening = false;  // it ended before a connection was made
    bool may_change = false;
    bool tls_failed = false;
    Status why;
    [[nodiscard]] bool active() const { return started && !ended; }
  };

  void start_due();
  void start(Attempt& attempt);
  void end(Attempt& attempt, Status why);
  [[nodiscard]] Status handle(Attempt& attempt);
  [[nodiscard]] Status read_handshake(Attempt& attempt);
  void keep_only(const Attempt& attempt);
  [[nodiscard]] bool all_ended() const;

  Secret key_;
  Claim claim_;
  const TlsChoice tls_;
  const bool plain_;
  const int longest_segment_;
  const std::size_t of_path_;
  std::vector<Attempt> attempts_;
  std::size_t next_ = 0;  // the next attempt to start
  Deadline next_start_ = Deadline::after_ms(0);
  std::optional<SocketAddress> found_;
  bool refused_ = false;
  Status broken_;  // a local failure: out of descriptors
};

}  // namespace seto
