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
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

// What connections of the rendezvous are for, as their membership claims say.
enum class GatheringPurpose : std::uint8_t { rendezvous = 1, result_tree };

// A call to a member: the local socket if there is one under that name, else every address, the best first and the next whenever
// one has failed or is slow. The first that proves its membership is taken. Does not block, but for a local queue that is full.
class MemberCall final {
 public:
  // Between the beginnings of two attempts: long enough for a round trip of a site, so that the best address usually wins.
  static constexpr std::uint64_t kStaggerMs = 50;

  MemberCall(Contact contact, Secret key, Claim claim);

  void begin(Deadline local_until);
  // Adds what to wait for.
  void prepare(std::vector<pollfd>& entries) const;
  // Until the next address is due, at most.
  [[nodiscard]] int wait_ms() const;
  void advance();

  [[nodiscard]] bool over() const { return member_.valid() || ended_ == attempts_.size(); }
  // Something listened: a failure is more than that nobody was there yet.
  [[nodiscard]] bool reached() const { return reached_; }
  // Somebody hung up without a reason: a server that has too many callers does.
  [[nodiscard]] bool hung_up() const { return hung_up_; }
  // Somebody has proved that he has the key, whatever he said then.
  [[nodiscard]] bool proven() const;
  // And has refused the call.
  [[nodiscard]] bool refused() const;
  // Once over: the socket, or each address with what was wrong there. Not over: what is known by now.
  [[nodiscard]] Result<PrivateFd> take();

 private:
  enum class Stage : std::uint8_t { waiting, connecting, proving, ended };
  struct Attempt {
    std::optional<SocketAddress> address;  // none: the local socket
    Stage stage = Stage::waiting;
    PrivateFd fd;
    std::optional<CallerHandshake> handshake;
    std::string out;
    Status reason;
    bool answered = false;  // what is wrong was heard, not only met
  };

  void start(Attempt& attempt);
  void prove(Attempt& attempt, PrivateFd fd);
  void advance(Attempt& attempt);
  [[nodiscard]] bool flush(Attempt& attempt);
  void end(Attempt& attempt, Status reason);
  void start_due();

  Contact contact_;
  Secret key_;
  Claim claim_;
  std::vector<Attempt> attempts_;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  Deadline next_ = Deadline::after_ms(0);
  PrivateFd member_;
  bool reached_ = false;
  bool hung_up_ = false;
};

}  // namespace seto
