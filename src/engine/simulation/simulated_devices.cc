#include "src/engine/simulation/simulated_devices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "src/codec/codec.h"
#include "src/engine/coding.h"
#include "src/engine/device/device_channels.h"

namespace seto {
namespace {

using kernels::ChannelEnd;
using kernels::DeviceOperand;
using kernels::DeviceProgram;
using kernels::DeviceStep;
using kernels::OperandSpace;

constexpr double kNotYet = std::numeric_limits<double>::infinity();
constexpr std::size_t kNone = ~std::size_t{0};

// Made-up addresses of workspaces, which tell the rank of a flag.
constexpr int kRankShift = 44;
kernels::Address workspace_of(std::size_t rank) { return std::uint64_t{rank + 1} << kRankShift; }
std::size_t rank_of(kernels::Address address) { return static_cast<std::size_t>(address >> kRankShift) - 1; }

double& part(DeviceCosts& costs, DeviceCost cost) { return costs[static_cast<std::size_t>(cost)]; }

// A step of one slice that was executed. `after` is the event that it had to wait for longest.
struct Event {
  double end_ns = 0;
  DeviceCosts ns{};
  std::size_t after = kNone;
  bool after_peer = false;  // a flag of another rank told of it
};

// By slice: the events that posted or read a message.
struct Message {
  std::vector<std::size_t> posted, read;
};

// The blocks of one rank, which go side by side.
struct Gang {
  const DeviceProgram* program = nullptr;
  std::uint64_t round = 0;
  std::uint32_t step = 0;  // the next one
  std::uint32_t end_of_round = 0;
  std::size_t last = kNone;   // its last event
  bool has_no_steps = false;  // left: only what it lent is waited for
  bool done = false;
};

class Devices final {
 public:
  Devices(std::span<const std::vector<std::byte>> programs, const SimulatedDevices& devices) : devices_(devices) {
    for (const std::vector<std::byte>& bytes : programs) {
      Gang& gang = gangs_.emplace_back();
      gang.program = reinterpret_cast<const DeviceProgram*>(bytes.data());
      outcome_.hops = std::max(outcome_.hops, std::max(1U, gang.program->stages) - 1);
      outcome_.counts.emplace_back().bytes_to.resize(programs.size());
    }
    arriving_ns_.resize(programs.size());
    leaving_ns_.resize(programs.size());
    starts_.resize(programs.size());
    for (std::size_t rank = 0; rank < gangs_.size(); ++rank) {
      begin(rank);
      enter_round(rank);
    }
  }

  Result<DeviceOutcome> run() && {
    for (;;) {
      std::optional<std::size_t> next;
      Start earliest;
      bool all_done = true;
      for (std::size_t rank = 0; rank < gangs_.size(); ++rank) {
        if (gangs_[rank].done) continue;
        all_done = false;
        Start& start = starts_[rank];
        if (start.at_ns == kNotYet) start = start_of(rank);
        if (start.at_ns < earliest.at_ns) {
          earliest = start;
          next = rank;
        }
      }
      if (all_done) break;
      if (!next) return stuck();
      execute(*next, earliest);
      starts_[*next].at_ns = kNotYet;
    }
    outcome_.path = path_to(last_event());
    return std::move(outcome_);
  }

 private:
  struct Start {
    double at_ns = kNotYet;
    std::size_t after = kNone;
    bool after_peer = false;
  };

  [[nodiscard]] const DeviceProgram& program(std::size_t rank) const { return *gangs_[rank].program; }
  [[nodiscard]] const DeviceStep& step_of(std::size_t rank) const {
    return program(rank).table<DeviceStep>(program(rank).steps)[gangs_[rank].step];
  }
  [[nodiscard]] const DeviceOperand& operand(std::size_t rank, const DeviceStep& step, std::uint32_t k) const {
    return program(rank).table<DeviceOperand>(program(rank).operands)[step.first_operand + k];
  }
  [[nodiscard]] const ChannelEnd& end(std::size_t rank, const DeviceOperand& operand) const {
    return program(rank).table<ChannelEnd>(program(rank).ends)[operand.end];
  }
  [[nodiscard]] std::uint64_t slice_of(std::size_t rank) const { return gangs_[rank].round - step_of(rank).stage; }

  [[nodiscard]] bool is_lent_target(const DeviceStep& step, std::uint32_t k) const {
    return k >= step.source_count + step.target_count - step.lent_targets;
  }

  // Both ends of a channel name the same flag, or the same slots where its messages are marked.
  static kernels::Address name_of(const ChannelEnd& end) { return end.posted != 0 ? end.posted : end.slots; }
  Message& message(const ChannelEnd& end) { return messages_[name_of(end)]; }

  // A look at the flags of the operation before, which have usually come.
  void begin(std::size_t rank) {
    Event event;
    if (program(rank).marked == 0) part(event.ns, DeviceCost::latency) = devices_.latency_ns;
    part(event.ns, DeviceCost::barriers) = devices_.barrier_ns;
    ++outcome_.counts[rank].barriers;
    add(rank, event, 0);
  }

  // The last block counts the others and tells all ranks.
  void finish(std::size_t rank, const Start& start) {
    Event event;
    event.after = start.after;
    event.after_peer = start.after_peer;
    if (start.after_peer) part(event.ns, DeviceCost::flags) = devices_.flag_ns;
    if (program(rank).marked == 0) {
      part(event.ns, DeviceCost::barriers) = 2 * devices_.barrier_ns;
      part(event.ns, DeviceCost::latency) = devices_.latency_ns;
      part(event.ns, DeviceCost::fences) = devices_.local_fence_ns;
      outcome_.counts[rank].barriers += 2;
    }
    add(rank, event, start.at_ns - (start.after_peer ? devices_.flag_ns : 0));
    outcome_.finish_ns.resize(gangs_.size());
    outcome_.finish_ns[rank] = events_.back().end_ns;
    gangs_[rank].done = true;
  }

  void add(std::size_t rank, Event event, double begin_ns) {
    event.end_ns = begin_ns;
    for (const double ns : event.ns) event.end_ns += ns;
    gangs_[rank].last = events_.size();
    events_.push_back(event);
  }

  // Goes on to the next round that has steps, or to the end.
  void enter_round(std::size_t rank) {
    Gang& gang = gangs_[rank];
    const DeviceProgram& mine = *gang.program;
    const auto* const first_steps = mine.table<std::uint32_t>(mine.first_steps);
    const std::uint64_t rounds = mine.stages == 0 ? 0 : mine.slices + mine.stages - 1;
    for (; gang.round < rounds; ++gang.round) {
      gang.step = first_steps[gang.round < mine.slices ? 0 : gang.round - mine.slices + 1];
      gang.end_of_round = first_steps[std::min<std::uint64_t>(gang.round + 1, mine.stages)];
      if (gang.step < gang.end_of_round) return;
    }
    gang.has_no_steps = true;
  }

  // The time at which all that the gang lent was read.
  Start start_of_end(std::size_t rank) {
    const DeviceProgram& mine = program(rank);
    Start start{events_[gangs_[rank].last].end_ns, gangs_[rank].last, false};
    const std::uint32_t steps = mine.table<std::uint32_t>(mine.first_steps)[mine.stages];
    for (std::uint32_t s = 0; s < steps; ++s) {
      const DeviceStep& step = mine.table<DeviceStep>(mine.steps)[s];
      for (std::uint32_t k = step.source_count; k < step.source_count + step.target_count; ++k)
        if (is_lent_target(step, k) && !wait_for(message(end(rank, operand(rank, step, k))).read, mine.slices - 1, start))
          return {};
    }
    return start;
  }

  // False: the event has not happened yet.
  bool wait_for(const std::vector<std::size_t>& told, std::uint64_t needed, Start& start) const {
    if (told.size() <= needed) return false;
    const double seen_ns = events_[told[needed]].end_ns + devices_.flag_ns;
    if (seen_ns > start.at_ns) start = {seen_ns, told[needed], true};
    return true;
  }

  // The time at which the gang's next step has all that it waits for. Never: a peer has not come so far.
  Start start_of(std::size_t rank) {
    if (gangs_[rank].has_no_steps) return start_of_end(rank);
    const DeviceStep& step = step_of(rank);
    const std::uint64_t slice = slice_of(rank);
    Start start{events_[gangs_[rank].last].end_ns, gangs_[rank].last, false};
    for (std::uint32_t k = 0; k < step.source_count + step.target_count; ++k) {
      const DeviceOperand& each = operand(rank, step, k);
      if (!is_message(each.space)) continue;
      const ChannelEnd& channel = end(rank, each);
      const bool receives = k < step.source_count;
      if (!receives && (is_lent(each.space) || slice < channel.depth)) continue;
      const Message& passed = message(channel);
      if (!wait_for(receives ? passed.posted : passed.read, receives ? slice : slice - channel.depth, start)) return {};
    }
    return start;
  }

  void execute(std::size_t rank, const Start& start) {
    Gang& gang = gangs_[rank];
    if (gang.has_no_steps) return finish(rank, start);
    const DeviceStep& step = step_of(rank);
    Event event;
    event.after = start.after;
    event.after_peer = start.after_peer;
    if (start.after_peer) part(event.ns, DeviceCost::flags) = devices_.flag_ns;
    const double begin_ns = start.at_ns - (start.after_peer ? devices_.flag_ns : 0);
    double now_ns = start.at_ns;
    for (std::uint32_t piece = 0; piece < step.pieces; ++piece) now_ns = run_pass(rank, step, piece, now_ns, event.ns);
    if (program(rank).marked == 0) {
      part(event.ns, DeviceCost::barriers) += devices_.barrier_ns * (step.pieces + 1);
      outcome_.counts[rank].barriers += step.pieces + 1;
      part(event.ns, DeviceCost::fences) += fence_ns(rank, step);
    }
    add(rank, event, begin_ns);
    tell(rank, step);
    if (++gang.step < gang.end_of_round) return;
    ++gang.round;
    enter_round(rank);
  }

  [[nodiscard]] double fence_ns(std::size_t rank, const DeviceStep& step) const {
    double ns = 0;
    for (std::uint32_t k = 0; k < step.source_count + step.target_count; ++k) {
      const OperandSpace space = operand(rank, step, k).space;
      if (is_message(space) && stores_flag(rank, step, k))
        ns = std::max(ns, k < step.source_count || is_lent(space) ? devices_.local_fence_ns : devices_.fence_ns);
    }
    return ns;
  }

  // The sender of a lent message waits for its last slice only.
  [[nodiscard]] bool stores_flag(std::size_t rank, const DeviceStep& step, std::uint32_t k) const {
    const bool reads_lent = k < step.source_count && is_lent(operand(rank, step, k).space);
    return !reads_lent || slice_of(rank) + 1 == program(rank).slices;
  }

  void tell(std::size_t rank, const DeviceStep& step) {
    for (std::uint32_t k = 0; k < step.source_count + step.target_count; ++k) {
      const DeviceOperand& each = operand(rank, step, k);
      if (!is_message(each.space)) continue;
      Message& passed = message(end(rank, each));
      (k < step.source_count ? passed.read : passed.posted).push_back(gangs_[rank].last);
      if (program(rank).marked == 0 && stores_flag(rank, step, k)) ++outcome_.counts[rank].flags;
    }
  }

  [[nodiscard]] double bytes_of(std::size_t rank, std::uint64_t elements, bool coded) const {
    if (!coded) return static_cast<double>(elements * program(rank).element_size);
    return static_cast<double>(encoded_size(codec_of(static_cast<std::uint8_t>(program(rank).codec)), elements));
  }

  // The bytes that a pass moves, by what they load.
  struct Moved {
    double block = 0;    // of the busiest block
    double memory = 0;   // of all blocks
    double out = 0;      // stored to all peers
    double in = 0;       // loaded from them
    double link_ns = 0;  // of the slowest peer
  };

  // One pass of all blocks. Returns its end, and adds its parts to the costs.
  double run_pass(std::size_t rank, const DeviceStep& step, std::uint32_t piece, double now_ns, DeviceCosts& costs) {
    const DeviceProgram& mine = program(rank);
    const std::uint64_t length = mine.table<std::uint64_t>(mine.lengths)[step.first_piece + piece];
    const std::uint64_t first = slice_of(rank) * mine.slice_elements;
    const std::uint64_t elements = std::min(length, first + mine.slice_elements) - std::min(length, first);
    if (mine.marked == 0) now_ns += devices_.barrier_ns;
    const std::uint32_t operands = step.source_count + step.target_count - step.lent_targets;
    if (elements == 0 || operands == step.source_count) return now_ns;
    ++outcome_.counts[rank].passes;
    const double latency_ns = first_bytes_ns(rank, step);
    part(costs, DeviceCost::latency) += latency_ns;
    now_ns += latency_ns;
    Moved moved;
    for (std::uint32_t k = 0; k < operands; ++k) {
      const bool is_target = k >= step.source_count;
      const bool coded = ((is_target ? step.coded_targets >> (k - step.source_count) : step.coded_sources >> k) & 1) != 0;
      const DeviceOperand& each = operand(rank, step, k);
      const double words = mine.marked != 0 && is_message(each.space) ? 2 : 1;  // half of a marked word is the mark
      const double bytes = words * bytes_of(rank, elements, coded);
      moved.block += words * bytes_of(rank, std::min(elements, mine.part_elements), coded);
      moved.memory += bytes;
      if (is_target ? is_message(each.space) : is_lent(each.space))
        cross(rank, end(rank, each), is_target, bytes, now_ns, moved);
      else
        outcome_.counts[rank].memory_bytes += bytes;
    }
    outcome_.counts[rank].block_bytes += moved.block;
    moved.link_ns = std::max(moved.link_ns, std::max(moved.out, moved.in) * devices_.port_ns_per_byte[rank]);
    return now_ns + longest_part(moved, moved.link_ns, costs);
  }

  // A load from a peer goes there and back, as a fence does.
  [[nodiscard]] double first_bytes_ns(std::size_t rank, const DeviceStep& step) const {
    for (std::uint32_t k = 0; k < step.source_count; ++k)
      if (is_lent(operand(rank, step, k).space)) return devices_.latency_ns + devices_.fence_ns;
    return devices_.latency_ns;
  }

  // Stores to one peer, or loads from it: the links of the pair, and the port of the peer, which others may use at the same time.
  void cross(std::size_t rank, const ChannelEnd& channel, bool stores, double bytes, double now_ns, Moved& moved) {
    const std::size_t peer = rank_of(stores ? name_of(channel) : channel.read);
    const std::size_t from = stores ? rank : peer;
    const std::size_t to = stores ? peer : rank;
    (stores ? moved.out : moved.in) += bytes;
    outcome_.counts[from].bytes_to[to] += bytes;
    double& free_at_ns = (stores ? arriving_ns_ : leaving_ns_)[peer];
    free_at_ns = std::max(free_at_ns, now_ns) + bytes * devices_.port_ns_per_byte[peer];
    const double pair_ns = bytes * devices_.pair_ns_per_byte(static_cast<Rank>(from), static_cast<Rank>(to));
    moved.link_ns = std::max({moved.link_ns, pair_ns, free_at_ns - now_ns});
  }

  // The accesses of the own memory and of that of peers go side by side.
  double longest_part(const Moved& moved, double link_ns, DeviceCosts& costs) const {
    const double block_ns = moved.block * devices_.block_ns_per_byte;
    const double memory_ns = moved.memory * devices_.memory_ns_per_byte;
    const double longest_ns = std::max({block_ns, memory_ns, link_ns});
    const DeviceCost cost = longest_ns == link_ns     ? DeviceCost::links
                            : longest_ns == memory_ns ? DeviceCost::memory
                                                      : DeviceCost::blocks;
    part(costs, cost) += longest_ns;
    return longest_ns;
  }

  [[nodiscard]] std::size_t last_event() const {
    const auto last = std::max_element(gangs_.begin(), gangs_.end(), [this](const Gang& a, const Gang& b) {
      return events_[a.last].end_ns < events_[b.last].end_ns;
    });
    return last->last;
  }

  [[nodiscard]] DevicePath path_to(std::size_t event) const {
    DevicePath path;
    for (; event != kNone; event = events_[event].after) {
      for (std::size_t cost = 0; cost < kDeviceCosts; ++cost) path.ns[cost] += events_[event].ns[cost];
      if (events_[event].after_peer) ++path.waits;
    }
    return path;
  }

  [[nodiscard]] Status stuck() const {
    for (std::size_t rank = 0; rank < gangs_.size(); ++rank)
      if (!gangs_[rank].done && gangs_[rank].has_no_steps)
        return failure(Code::internal, "rank %zu is stuck at the end of its device program: a message was not read", rank);
      else if (!gangs_[rank].done)
        return failure(Code::internal, "rank %zu is stuck at step %u of its device program, slice %ju", rank, gangs_[rank].step,
                       std::uintmax_t{slice_of(rank)});
    return {};
  }

  const SimulatedDevices& devices_;
  std::vector<Gang> gangs_;
  std::vector<Start> starts_;  // by rank, of its next step; never: not known yet
  std::vector<Event> events_;
  std::map<kernels::Address, Message> messages_;
  std::vector<double> arriving_ns_;  // by rank: when its port is free for further stores of peers
  std::vector<double> leaving_ns_;   // and for further loads of peers
  DeviceOutcome outcome_;
};

}  // namespace

DeviceCost DevicePath::binding() const { return static_cast<DeviceCost>(std::max_element(ns.begin(), ns.end()) - ns.begin()); }

double DeviceOutcome::longest_ns() const { return *std::max_element(finish_ns.begin(), finish_ns.end()); }

Result<DeviceOutcome> simulate_devices(std::span<const BoundProgram> programs, const DeviceCut& cut,
                                       const SimulatedDevices& devices) {
  if (programs.empty() || devices.port_ns_per_byte.size() != programs.size() || !devices.pair_ns_per_byte)
    return failure(Code::invalid_argument, "a simulation of GPUs needs links for each of %zu ranks", programs.size());
  SETO_ASSIGN(const DeviceChannels channels, DeviceChannels::join(programs, cut));
  std::vector<kernels::Address> workspaces;
  std::size_t largest = 0;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    workspaces.push_back(workspace_of(rank));
    largest = std::max(largest, channels.workspace_size(rank));
  }
  std::vector<std::vector<std::byte>> lowered;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    SETO_ASSIGN(lowered.emplace_back(), lower_to_device(programs[rank], cut, channels.ends_of(rank, workspaces)));
  }
  SETO_ASSIGN(DeviceOutcome outcome, Devices(lowered, devices).run());
  outcome.workspace = largest;
  return outcome;
}

}  // namespace seto
