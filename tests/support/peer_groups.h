#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "transports/transport.h"

// What a transport gives the conformance suite: circles of any number of members. A new transport adds one CircleTransport to
// the table in circles.cc.
namespace seto::support {

struct CirclesWanted {
  std::uint32_t members = 2;
  std::uint32_t circles = 1;  // among the same members
  std::uint32_t ports = 16;
  std::uint64_t limit_bytes = std::numeric_limits<std::uint64_t>::max();  // of memory that a member may share
};

// What a stray store may hit of what a sender says of its stream.
enum class Damage : std::uint8_t { offset, stride, depth, digest, mark, done };
inline constexpr Damage kDamages[] = {Damage::offset, Damage::stride, Damage::depth, Damage::digest, Damage::mark, Damage::done};

struct DamagedStream {
  StreamAddress address;
  std::uint32_t receiver = 0;  // of a multicast: any
  std::uint64_t operation = 1;
  Damage damage = Damage::mark;
  std::uint64_t random = 0;
};

// And of what it says of a message to one member. The last three are of messages that have slots.
enum class PairDamage : std::uint8_t { mark, size, label, verdict, depth, offset, stride, first };
inline constexpr PairDamage kPairDamages[] = {PairDamage::mark,  PairDamage::size,   PairDamage::label,  PairDamage::verdict,
                                              PairDamage::depth, PairDamage::offset, PairDamage::stride, PairDamage::first};

struct DamagedMessage {
  std::uint32_t receiver = 0;
  std::uint64_t message = 1;
  PairDamage damage = PairDamage::mark;
  std::uint64_t random = 0;
};

// One member's part. Calls come from the member's thread.
class CircleMember {
 public:
  virtual ~CircleMember() = default;

  [[nodiscard]] virtual std::uint32_t index() const = 0;
  [[nodiscard]] virtual Circle& circle(std::size_t which) = 0;
  Circle& circle() { return circle(0); }
  // Ends a circle; its streams are gone already.
  virtual void close(std::size_t which) = 0;
  // Bytes that the streams of all its circles hold.
  [[nodiscard]] virtual std::size_t leased() const = 0;
  // Of its own memory, for the memory face; nullptr: the transport has none.
  virtual std::byte* shared_memory(std::size_t size) = 0;

  virtual void arm() = 0;
  virtual void disarm() = 0;
  // After arm(). False: nobody rang within the time.
  virtual bool await_bell(int milliseconds) = 0;

  // What it has sent lies in memory that its receivers read; else it is out of reach.
  [[nodiscard]] virtual bool shares_memory() const { return true; }

  // Damages what this member has sent. Never while a receiver runs. Only of shared memory.
  virtual void damage(const DamagedStream& stream) = 0;
  virtual void damage(const DamagedMessage& message) = 0;
};

class CircleTransport {
 public:
  using Body = std::function<void(CircleMember&)>;

  virtual ~CircleTransport() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // Sizes of messages around which it changes its ways.
  [[nodiscard]] virtual std::vector<std::uint32_t> boundaries() const = 0;
  // All members within this process; empty: its members are processes.
  [[nodiscard]] virtual std::vector<std::unique_ptr<CircleMember>> make(const CirclesWanted& wanted) const = 0;
  // The body as every member at once, in threads or processes. Returns when all have ended; false: a process failed.
  [[nodiscard]] virtual bool run(const CirclesWanted& wanted, const Body& body) const = 0;
};

// Every transport, in every way its members can live.
std::span<const CircleTransport* const> circle_transports();
// Those whose members can live in one thread.
std::vector<const CircleTransport*> one_thread_transports();

}  // namespace seto::support
