#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/types.h"

// The representation: what every rank does in one collective, as data. No bytes, no pointers, no addresses, no sizes.
//
// Two kinds of program share it. A *plain* program comes from the builder: one verb a step, at most one channel end a step,
// steps in the lanes of their peers. A *lowered* program comes from an engine: steps are fused (any number of sources and
// targets, channel ends among them) and each step is its own lane. The verifier takes both.
namespace seto {

// send     place -> channel              receive  channel -> place
// copy     place -> place                reduce   ordered places -> place, rounded once a fold step of the element type
// scale    place -> place, times the rank's own scalar, rounded to the element type
// finish   place -> place, divided by the rank count (avg over integers)
// round    place -> place, as the codec of the shape leaves it: what is sent of it from here on are its bytes
// A fused step is a copy or a reduce whose operands are channels as well as places.
enum class Verb : std::uint8_t { send, receive, copy, reduce, scale, finish, round };

enum class Space : std::uint8_t { input, output, scratch, channel };

struct Operand {
  Space space = Space::input;
  bool scaled = false;      // lowered programs: `scale` applied as the value is read
  std::uint32_t index = 0;  // first chunk in its space, or the channel's index in Program::channels

  friend bool operator==(const Operand&, const Operand&) = default;
};

// "That lane has completed `steps` steps", for the same slice as the step that waits.
struct Dependency {
  std::uint32_t lane = 0;
  std::uint32_t steps = 0;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Step {
  Verb verb = Verb::copy;
  bool finishes = false;            // lowered: `finish` applied to the result before it is stored
  bool rounds = false;              // lowered: `round` applied after that
  std::uint16_t stage = 0;          // message hops behind the value; a closed function of the author's round
  std::uint32_t order = 0;          // the author's order, across the lanes of this rank
  std::uint32_t chunk = 0;          // first logical chunk: says how long each chunk is, the same on every rank
  std::uint32_t count = 1;          // chunks, contiguous in every operand
  std::uint32_t first_operand = 0;  // sources, then targets
  std::uint16_t source_count = 0;
  std::uint16_t target_count = 0;
  std::uint32_t first_dependency = 0;
  std::uint32_t dependency_count = 0;

  friend bool operator==(const Step&, const Step&) = default;
};

// An ordered flow from one rank to one or more receivers; it carries one message for each slice, of `count` chunks.
// Its address is (sender, receiver, port) for one receiver, and (sender, group, port) for a multicast: every end can derive it
// alone from the statements that touch it.
struct Channel {
  Rank sender = 0;
  std::uint32_t first_receiver = 0;  // in Program::receivers
  std::uint32_t receiver_count = 1;
  std::uint8_t group = 0;  // 0: one receiver. Else which multicast group of the sender
  std::uint16_t port = 0;  // k-th channel of that address
  std::uint32_t chunk = 0;
  std::uint32_t count = 1;
  std::uint16_t stage = 0;  // of the step that sends; it is read at stage + 1
  // Its bytes are encoded: of a value that was rounded, or came so, they are the same bytes; any other is rounded on its way.
  bool coded = false;

  friend bool operator==(const Channel&, const Channel&) = default;
};

struct Lane {
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;

  friend bool operator==(const Lane&, const Lane&) = default;
};

// What a step reads at most, and what it writes: one pass of the kernels. Whoever makes a plan with more refuses instead.
inline constexpr std::uint32_t kMostSources = 64;
inline constexpr std::uint32_t kMostTargets = 64;

// One rank's part.
struct Program {
  Rank rank = 0;
  std::uint32_t scratch_chunks = 0;
  std::uint32_t fan = 0;  // peers active at once, at most
  std::vector<Lane> lanes;
  std::vector<Step> steps;  // lane by lane
  std::vector<Operand> operands;
  std::vector<Dependency> dependencies;
  std::vector<Channel> channels;
  std::vector<Rank> receivers;

  std::span<const Operand> sources(const Step& step) const { return {operands.data() + step.first_operand, step.source_count}; }
  std::span<const Operand> targets(const Step& step) const {
    return {operands.data() + step.first_operand + step.source_count, step.target_count};
  }
  std::span<const Dependency> dependencies_of(const Step& step) const {
    return {dependencies.data() + step.first_dependency, step.dependency_count};
  }
  std::span<const Rank> receivers_of(const Channel& channel) const {
    return {receivers.data() + channel.first_receiver, channel.receiver_count};
  }
  std::span<const Step> steps_of(const Lane& lane) const { return {steps.data() + lane.first_step, lane.step_count}; }
  std::uint32_t stages() const;  // the last stage + 1

  friend bool operator==(const Program&, const Program&) = default;
};

// How contributions become the result; from the operation and the type.
enum class Finish : std::uint8_t {
  none,
  scale_contributions,  // avg over floats, pre-multiplied sums: each contributor multiplies its own
  divide_result,        // avg over integers
};

// What a plan is for. Equal shapes give equal plans on every rank.
struct Shape {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::uint32_t pieces = 1;  // logical chunks a part
  Finish finish = Finish::none;
  std::uint8_t codec = 0;        // of coded messages, as the engine numbers them; 0: none are
  std::uint8_t coded_tiers = 0;  // bit t: those of tier t are

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Plan {
  std::string name;
  Shape shape;
  std::vector<Program> programs;  // one a rank: only verifier and tools have them all
};

std::string_view name_of(Verb verb);
std::string_view name_of(Space space);

}  // namespace seto
