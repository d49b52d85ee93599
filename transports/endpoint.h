#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/far_link.h"
#include "src/base/result.h"
#include "src/net/secret.h"
#include "transports/connection.h"
#include "transports/peer_group_seat.h"

namespace seto {

// Where a context is. Its rank announces that before any connection exists.
struct Place {
  std::string host;     // contexts of one host share memory
  std::string process;  // LocalConnector::address(): other processes of the host reach it there
  ContextId context = 0;
};

// A member of an attempt. What it refers to outlives the attempt: there may be many members.
struct AttemptMember {
  std::uint32_t number = 0;  // in texts: users know it as a rank
  const Place* place = nullptr;
  std::string_view address;         // Endpoint::address() of its endpoint
  std::span<const AttemptId> held;  // ascending: it holds the connections of these attempts open
  bool wanted = false;              // connect to it now
  bool same_site = false;           // both state this site: their data needs no encryption
  SocketNeed need{};                // of the link to it, without its round trip: the same at both ends
  std::string_view site{};          // a name for it; only where control messages are passed on
  bool proved = false;              // also where connections are opened on first use, this one is opened at once
};

// An attempt to connect contexts. Each of them states the same members in the same order.
struct Attempt {
  AttemptId id = 0;
  Secret key;  // of the members, if they are on several hosts
  std::uint32_t own = 0;
  std::vector<AttemptMember> members;
  double ranks_per_core = 1;  // where that is highest
  // Connections may be opened when they are first used, as far as their medium can do that. The same at all members.
  bool on_first_use = false;
  // Processes pass control messages on, and have control channels to few others. Only with on_first_use. The same at all members,
  // of which all of this medium take part, also those that want no connection.
  bool relayed = false;
  std::uint64_t opening_ms = 120'000;  // then the opening of such a connection fails
};

// The end of one context on one medium. Any thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  // Opaque bytes that peers need beyond the place. The members of an attempt exchange them once.
  [[nodiscard]] virtual std::string address(const Config& config) const = 0;
  // Accepts peers that have this key while the result exists. Null: the medium needs no key.
  [[nodiscard]] virtual std::shared_ptr<void> admit(const Secret& key) = 0;
  // Connects to all wanted members, which do the same; blocks until then, at most until the deadline. Every member of the host or
  // network calls it, also one that wants no connection. Fills `made`, by member, also before it fails: a peer that has its end
  // already must learn the reason before the connection closes. The text of a failure names the member.
  [[nodiscard]] virtual Status connect(const Attempt& attempt, Deadline until, Connections& made) = 0;
  // The round trip to the host of a member in microseconds, measured without its help; 0: unknown. `near_us`: shorter ones are
  // good enough.
  [[nodiscard]] virtual std::uint32_t measure_round_trip(const Attempt& attempt, std::uint32_t member, std::uint32_t near_us,
                                                         Deadline until) {
    (void)attempt, (void)member, (void)near_us, (void)until;
    return 0;
  }
  // This context makes no further connection in the attempt: peers that wait for it get the reason as Code::aborted.
  virtual void decline(const Attempt& attempt, const Status& reason) = 0;
  // The first step to a peer group.
  [[nodiscard]] virtual Result<std::unique_ptr<PeerGroupSeat>> reserve_seat(const GroupSize& size) = 0;
};

// Puts the rank of the member in front, except of a reason that the member itself has reported (Code::aborted).
[[nodiscard]] inline Status named(const AttemptMember& member, const Status& reason) {
  if (reason.code() == Code::aborted) return reason;
  return {reason.code(), "rank " + std::to_string(member.number) + ": " + std::string(reason.text())};
}

}  // namespace seto
