#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/address.h"
#include "src/net/auth_handshake.h"
#include "src/net/secret.h"

namespace seto {

// What looks final may be a moment too early: a key that is not there yet, a porch that strangers crowd, a route that comes up.
inline constexpr std::uint64_t kPatienceMs = 10'000;

// The next address is tried so much later than the one before it, or as soon as none of them is under way.
inline constexpr int kDialStaggerMs = 50;

// One attempt to reach another process: at all of its addresses at once, best first; who proves first that it is the one wins.
// Not thread safe.
class Dial final {
 public:
  struct Target {
    std::vector<SocketAddress> addresses;
    Secret key;
    Claim claim;
  };
  explicit Dial(const Target& target);

  // Goes on for at most so long. The accepted connection, or nothing yet, or why there will be none.
  [[nodiscard]] Result<std::optional<PrivateFd>> advance(int wait_ms);

  // Where the process proved itself.
  [[nodiscard]] const std::optional<SocketAddress>& found() const { return found_; }

  // After a failure: a member has refused, and means it.
  [[nodiscard]] bool refused() const { return refused_; }
  // At every address nobody listens, or no way leads there.
  [[nodiscard]] bool nobody_there() const;
  // Where a process answered, it did not know the key.
  [[nodiscard]] bool key_unknown() const;
  // What was wrong at some address may be otherwise a moment later.
  [[nodiscard]] bool may_change() const;

  // While it goes on: some address has failed, and at none did anybody as much as answer the phone.
  [[nodiscard]] bool hopeless() const;
  // Every address and what became of it.
  [[nodiscard]] std::string report() const;

 private:
  struct Line {
    SocketAddress address{};
    PrivateFd fd;
    std::optional<CallerHandshake> handshake;  // once connected
    bool started = false;
    bool ended = false;
    bool nobody = false;  // it ended before anybody was there
    bool may_change = false;
    Status why;
    [[nodiscard]] bool active() const { return started && !ended; }
  };

  void start_due();
  void start(Line& line);
  void end(Line& line, Status why);
  [[nodiscard]] Status handle(Line& line);
  [[nodiscard]] Status talk(Line& line);
  [[nodiscard]] Status hear(Line& line, std::string_view bytes);
  void keep_only(const Line& line);
  [[nodiscard]] bool all_ended() const;

  Secret key_;
  Claim claim_;
  std::vector<Line> lines_;
  std::size_t next_ = 0;  // to be started
  Deadline next_start_ = Deadline::after_ms(0);
  std::optional<SocketAddress> found_;
  bool refused_ = false;
  Status broken_;  // of this process: it is out of descriptors
};

}  // namespace seto
