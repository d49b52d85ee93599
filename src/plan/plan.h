#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/types.h"

// The representation of a plan: what every rank does in one collective, as data. It has no bytes, pointers, addresses or sizes.
//
// Two kinds of program share it. A *plain* program comes from the builder: one verb for each step, at most one channel end for
// each step, steps in the lanes of their peers. A *lowered* program comes from an engine: its steps are fused (any number of
// sources and targets, among them channel ends), and each step is its own lane. The verifier accepts both.
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
  bool scaled = false;      // lowered programs: `scale` is applied when the value is read
  std::uint32_t index = 0;  // first chunk in its space, or the channel's index in Program::channels

  friend bool operator==(const Operand&, const Operand&) = default;
};

// States that this lane has completed `steps` steps, for the same slice as the step that waits.
struct Dependency {
  std::uint32_t lane = 0;
  std::uint32_t steps = 0;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Step {
  Verb verb = Verb::copy;
  bool finishes = false;            // lowered: `finish` is applied to the result before it is stored
  bool rounds = false;              // lowered: `round` is applied after that
  std::uint16_t stage = 0;          // message hops of the value; a function of the author's round
  std::uint32_t order = 0;          // the author's order, across the lanes of this rank
  std::uint32_t chunk = 0;          // first logical chunk, which gives the length of each chunk, the same on every rank
  std::uint32_t count = 1;          // chunks, contiguous in every operand
  std::uint32_t first_operand = 0;  // sources, then targets
  std::uint16_t source_count = 0;
  std::uint16_t target_count = 0;
  std::uint32_t first_dependency = 0;
  std::uint32_t dependency_count = 0;

  friend bool operator==(const Step&, const Step&) = default;
};

// An ordered flow of messages from one rank to one or more receivers, one message of `count` chunks for each slice. Its address
// is (sender, receiver, port) for one receiver, and (sender, group, port) for a multicast. Each end derives it alone from the
// statements that concern it.
struct Channel {
  Rank sender = 0;
  std::uint32_t first_receiver = 0;  // index in Program::receivers
  std::uint32_t receiver_count = 1;
  std::uint8_t group = 0;  // 0: one receiver; else the number of a multicast group of the sender
  std::uint16_t port = 0;  // number of this channel among those of the pair or group
  std::uint32_t chunk = 0;
  std::uint32_t count = 1;
  std::uint16_t stage = 0;  // stage of the step that sends; the receiver's is stage + 1
  // Its messages are encoded. A value that was rounded, or arrived coded, keeps its encoded bytes; any other value is rounded
  // when it is sent.
  bool coded = false;

  friend bool operator==(const Channel&, const Channel&) = default;
};

struct Lane {
  std::uint32_t first_step = 0;
  std::uint32_t step_count = 0;

  friend bool operator==(const Lane&, const Lane&) = default;
};

// Limits of the operands of one step, which is one pass of the kernels. A builder or an engine refuses to make a plan with more.
inline constexpr std::uint32_t kMostSources = 64;
inline constexpr std::uint32_t kMostTargets = 64;

// One rank's part.
struct Program {
  Rank rank = 0;
  std::uint32_t scratch_chunks = 0;
  std::uint32_t fan = 0;  // most peers active at one time
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
  std::uint32_t stages() const;  // the highest stage + 1

  friend bool operator==(const Program&, const Program&) = default;
};

// How contributions become the result. It follows from the operation and the type.
enum class Finish : std::uint8_t {
  none,
  scale_contributions,  // avg over floats, pre-multiplied sums: each rank multiplies its own contribution
  divide_result,        // avg over integers
};

// The properties of calls for which a plan is made. Equal shapes give equal plans on every rank.
struct Shape {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  std::uint32_t pieces = 1;  // logical chunks of each part
  Finish finish = Finish::none;
  std::uint8_t codec = 0;        // codec of coded messages, as the engine numbers them; 0: none
  std::uint8_t coded_tiers = 0;  // bit t: messages of tier t are coded

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Plan {
  std::string name;
  Shape shape;
  std::vector<Program> programs;  // one for each rank; only the verifier and tools have all of them
};

std::string_view name_of(Verb verb);
std::string_view name_of(Space space);

}  // namespace seto
