#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "transports/transport.h"

// The interface of a transport to the conformance suite: peer groups of any number of members. Transports of make_transports()
// are in the table automatically (context_peer_groups.h); the others are parts of shm and tcp, combined without contexts.
namespace seto::support {

struct PeerGroupsWanted {
  std::uint32_t members = 2;
  std::uint32_t peer_groups = 1;  // groups of the same members
  std::uint32_t ports = 16;
  std::uint64_t limit_bytes = std::numeric_limits<std::uint64_t>::max();  // limit of the memory that a member may share
  std::size_t room_to_move_on = 256 << 10;  // of members that map each other's memory; 0: slots stay
};

// The fields of a stream's description that a stray store of the sender may damage.
enum class Damage : std::uint8_t { offset, stride, depth, digest, mark, done };
inline constexpr Damage kDamages[] = {Damage::offset, Damage::stride, Damage::depth, Damage::digest, Damage::mark, Damage::done};

struct DamagedStream {
  StreamAddress address;
  std::uint32_t receiver = 0;  // for a multicast: any receiver
  std::uint64_t operation = 1;
  Damage damage = Damage::mark;
  std::uint64_t random = 0;
};

// The same for the description of a message to one member. The last three exist only for messages in slots.
enum class PairDamage : std::uint8_t { mark, size, label, verdict, depth, offset, stride, first };
inline constexpr PairDamage kPairDamages[] = {PairDamage::mark,  PairDamage::size,   PairDamage::label,  PairDamage::verdict,
                                              PairDamage::depth, PairDamage::offset, PairDamage::stride, PairDamage::first};

struct DamagedMessage {
  std::uint32_t receiver = 0;
  std::uint64_t message = 1;
  PairDamage damage = PairDamage::mark;
  std::uint64_t random = 0;
};

enum class Supposed : std::uint8_t { dead, frozen };

// One member. The member's thread makes all calls.
class PeerGroupMember {
 public:
  virtual ~PeerGroupMember() = default;

  [[nodiscard]] virtual std::uint32_t index() const = 0;
  [[nodiscard]] virtual PeerGroup& peer_group(std::size_t which) = 0;
  PeerGroup& peer_group() { return peer_group(0); }
  // Ends a peer group, whose streams are closed already.
  virtual void close(std::size_t which) = 0;
  // The bytes that the streams of all its peer groups hold.
  [[nodiscard]] virtual std::size_t leased() const = 0;

  // Does the work of the background thread of a context while no call is active.
  virtual void attend() {}

  virtual void arm() = 0;
  virtual void disarm() = 0;
  // Waits after arm(). Returns false if no wakeup came within the time.
  virtual bool await_wakeup(int milliseconds) = 0;

  // Memory that it can lend, also where its receivers see it at another address (PartialLender).
  [[nodiscard]] virtual std::pmr::memory_resource& lendable_memory() { return *std::pmr::get_default_resource(); }
  // From now on this member takes that other one for dead or frozen. For lending_by_offset().
  virtual void suppose(std::uint32_t other, Supposed state) { static_cast<void>(other), static_cast<void>(state); }
  // True if its sent messages lie in memory that its receivers read; else they are out of reach.
  [[nodiscard]] virtual bool shares_memory() const { return true; }

  // Damages sent data of this member, only in shared memory and never while a receiver runs.
  virtual void damage(const DamagedStream& stream) = 0;
  virtual void damage(const DamagedMessage& message) = 0;
};

class PeerGroupTransport {
 public:
  using Body = std::function<void(PeerGroupMember&)>;

  virtual ~PeerGroupTransport() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // The message sizes at which the transport changes its method.
  [[nodiscard]] virtual std::vector<std::uint32_t> boundaries() const = 0;
  // All members within this process; empty if its members are processes.
  [[nodiscard]] virtual std::vector<std::unique_ptr<PeerGroupMember>> make(const PeerGroupsWanted& wanted) const = 0;
  // Runs the body on every member at the same time, in threads or processes. Returns when all have ended; false if a process
  // failed.
  [[nodiscard]] virtual bool run(const PeerGroupsWanted& wanted, const Body& body) const = 0;
};

// Every transport, with members as threads and as processes.
std::span<const PeerGroupTransport* const> peer_group_transports();
// Transports whose members can all run in one thread.
std::vector<const PeerGroupTransport*> one_thread_transports();
// Slots whose members lend memory by its offset in a file, which each of them maps elsewhere: in one thread, and as processes.
const PeerGroupTransport& lending_by_offset();
const PeerGroupTransport& lending_by_offset_in_processes();

}  // namespace seto::support
