#include "src/report/device/device_prediction.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/text.h"
#include "src/core/call/ids.h"
#include "src/core/device_memory/device_costs.h"
#include "src/core/device_memory/device_cut.h"
#include "src/core/device_memory/workspaces.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/lowering.h"
#include "src/plan/layout.h"
#include "src/report/explain.h"

namespace seto {
namespace {

constexpr std::uint64_t kGrainBytes = 64;
constexpr std::uint64_t kLine = 128;
constexpr std::uint64_t kSmallestSlice = 16 << 10;  // bytes; a shorter chunk is one slice
constexpr std::uint64_t kMostTried = 4096;          // slices of a chunk
constexpr std::uint64_t kFewestTried = 32;          // numbers of slices up to this one are tried in any case

// How the blocks share a call.
struct DeviceSlices {
  std::uint64_t elements = 1;
  std::uint32_t blocks = 1;
  std::uint32_t depth = kDeviceSlots;
  bool marked = false;  // one exchange of marked messages
  bool lent = false;    // messages are read in the buffers of the peers, as far as the plan permits it
};

// The programs of all ranks for a call, lowered once and bound for one slice after another.
class Programs final {
 public:
  Programs(const Algorithm& algorithm, const Question& question, std::uint64_t bytes, int ranks)
      : type_(question.type),
        shape_{question.collective, ranks, question.root, 1, Finish::none},
        in_place_(static_cast<std::size_t>(ranks), InPlace::no) {
    const Tiers tiers = Tiers::flat(ranks);
    shape_.pieces = algorithm.pieces(shape_, tiers);
    const std::uint64_t count = part_bytes(question.collective, bytes, ranks) / size_of(type_);
    for (Rank rank = 0; rank < ranks; ++rank) {
      lowered_.push_back(
          lower(build_program(algorithm, shape_, tiers, rank, InPlace::no), shape_, InPlace::no, rules_for(type_)));
      layouts_.push_back(Layout::uniform(shape_, rank, count, static_cast<std::uint32_t>(kGrainBytes / size_of(type_))));
    }
    lent_ = lent_messages({algorithm, shape_, tiers, type_, longest()}, lowered_, in_place_);
  }

  [[nodiscard]] std::uint64_t longest() const { return std::max<std::uint64_t>(1, layouts_.front().longest()); }

  [[nodiscard]] const LentMessages& lent() const { return lent_; }

  [[nodiscard]] std::uint32_t stages() const {
    std::uint32_t most = 1;
    for (const Program& program : lowered_) most = std::max(most, program.stages());
    return most;
  }

  [[nodiscard]] Result<DeviceOutcome> run(const DeviceSlices& slices, const SimulatedDevices& devices) const {
    SETO_ASSIGN(const std::vector<BoundProgram> bound, bind(slices));
    return simulate_devices(bound, {.blocks = slices.blocks, .longest = longest(), .marked = slices.marked}, devices);
  }

  // The bytes of slots and flags of the rank that has most.
  [[nodiscard]] Result<std::size_t> workspace(const DeviceSlices& slices) const {
    SETO_ASSIGN(const std::vector<BoundProgram> bound, bind(slices));
    SETO_ASSIGN(const DeviceChannels channels, DeviceChannels::join(bound, {slices.blocks, longest()}));
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < bound.size(); ++rank) most = std::max(most, channels.workspace_size(rank));
    return most;
  }

  // The chain of steps and flags of one slice, if bytes took no time.
  [[nodiscard]] Result<DeviceOutcome> run_without_bytes(const DeviceModel& model) const {
    SimulatedDevices devices = model.devices;
    devices.block_ns_per_byte = devices.memory_ns_per_byte = 0;
    std::fill(devices.port_ns_per_byte.begin(), devices.port_ns_per_byte.end(), 0);
    devices.pair_ns_per_byte = [](Rank, Rank) { return 0.0; };
    return run({longest(), model.blocks, kDeviceSlots}, devices);
  }

 private:
  [[nodiscard]] Result<std::vector<BoundProgram>> bind(const DeviceSlices& slices) const {
    std::vector<BoundProgram> bound;
    for (std::size_t rank = 0; rank < lowered_.size(); ++rank) {
      BindRequest request;
      request.program = &lowered_[rank];
      request.shape = shape_;
      request.layout = &layouts_[rank];
      request.type = type_;
      request.tuning = {slices.elements, slices.depth, 0};
      if (slices.lent && !lent_.channels.empty()) request.lent = lent_.channels[rank];
      SETO_ASSIGN(bound.emplace_back(), bind_program(request));
    }
    return bound;
  }

  DataType type_;
  Shape shape_;
  std::vector<InPlace> in_place_;
  LentMessages lent_;
  std::vector<Program> lowered_;
  std::vector<Layout> layouts_;
};

// The time that the busiest resource of any GPU needs for its bytes.
double busy_ns(const DeviceOutcome& outcome, const SimulatedDevices& devices) {
  double busiest = 0;
  std::vector<double> arriving(outcome.counts.size());
  for (std::size_t rank = 0; rank < outcome.counts.size(); ++rank) {
    const DeviceCounts& counts = outcome.counts[rank];
    double leaving = 0;
    for (std::size_t peer = 0; peer < counts.bytes_to.size(); ++peer) {
      leaving += counts.bytes_to[peer];
      arriving[peer] += counts.bytes_to[peer];
      const double pair = devices.pair_ns_per_byte(static_cast<Rank>(rank), static_cast<Rank>(peer));
      busiest = std::max(busiest, counts.bytes_to[peer] * pair);
    }
    busiest = std::max({busiest, leaving * devices.port_ns_per_byte[rank], counts.block_bytes * devices.block_ns_per_byte,
                        (counts.memory_bytes + leaving) * devices.memory_ns_per_byte});
  }
  for (std::size_t rank = 0; rank < arriving.size(); ++rank)
    busiest = std::max(busiest, arriving[rank] * devices.port_ns_per_byte[rank]);
  return busiest;
}

DevicePrediction prediction_of(const Algorithm& algorithm, const Question& question, std::uint64_t bytes,
                               const Programs& programs, const DeviceSlices& slices, DeviceOutcome outcome) {
  DevicePrediction made;
  made.algorithm = &algorithm;
  made.bytes = bytes;
  made.blocks = slices.blocks;
  made.marked = slices.marked;
  made.lent = slices.lent && !programs.lent().channels.empty();
  made.lent_all = made.lent && programs.lent().all;
  const std::uint64_t slice = std::min(slices.elements, programs.longest());
  made.slice_bytes = slice * size_of(question.type);
  made.slices = (programs.longest() + slice - 1) / slice;
  made.seconds = outcome.longest_ns() * 1e-9;
  const int ranks = static_cast<int>(outcome.finish_ns.size());
  made.bus_bytes_per_second = static_cast<double>(bytes) * bus_factor(question.collective, ranks) / made.seconds;
  made.outcome = std::move(outcome);
  return made;
}

// The slices of a chunk that are tried: 1, 2, 4 ... of them, in elements, as multiples of a line.
std::vector<std::uint64_t> slices_to_try(std::uint64_t longest, std::size_t element) {
  std::vector<std::uint64_t> slices;
  for (std::uint64_t number = 1; number <= kMostTried; number *= 2) {
    const std::uint64_t unit = kLine / element;
    const std::uint64_t slice = ((longest + number - 1) / number + unit - 1) / unit * unit;
    if (!slices.empty() && (slice == slices.back() || slice * element < kSmallestSlice)) break;
    slices.push_back(slice);
  }
  return slices;
}

// The call as an exchange of marked messages. Absent if it is none, or too long for them.
std::optional<DevicePrediction> marked_of(const Algorithm& algorithm, const Question& question, std::uint64_t bytes,
                                          const DeviceModel& model) {
  const Programs programs(algorithm, question, bytes, model.ranks);
  const std::uint64_t length = part_bytes(question.collective, bytes, model.ranks) == 0 ? 0 : programs.longest();
  std::optional<DevicePrediction> made;
  if (!pays_marks(algorithm, model.ranks, length * size_of(question.type), model.costs)) return made;
  const DeviceSlices slices{programs.longest(), 1, kDeviceSlots, true};
  Result<DeviceOutcome> outcome = programs.run(slices, model.devices);
  if (outcome.ok()) made = prediction_of(algorithm, question, bytes, programs, slices, std::move(outcome).value());
  return made;
}

// Absent if no slice fits into the workspace.
Result<std::optional<DevicePrediction>> best_of(const Algorithm& algorithm, const Question& question, std::uint64_t bytes,
                                                const DeviceModel& model) {
  const Programs programs(algorithm, question, bytes, model.ranks);
  std::optional<DevicePrediction> best = marked_of(algorithm, question, bytes, model);
  const std::uint64_t longest = programs.longest();
  for (const std::uint64_t slice : slices_to_try(longest, size_of(question.type))) {
    if (best && longest / slice > kFewestTried && 4 * best->slices < longest / slice) break;  // more of them do not help
    for (const bool lent : {false, true}) {
      if (lent && programs.lent().channels.empty()) continue;
      const DeviceSlices slices{.elements = slice, .blocks = model.blocks, .lent = lent};
      Result<DeviceOutcome> outcome = programs.run(slices, model.devices);
      if (!outcome.ok()) return outcome.status();
      if (outcome->workspace > kMostWorkspace) continue;
      DevicePrediction made = prediction_of(algorithm, question, bytes, programs, slices, std::move(outcome).value());
      if (!best || made.seconds < best->seconds) best = std::move(made);
    }
  }
  return best;
}

// The algorithms of the question that can run; the pinned one alone, if one is pinned.
Result<std::vector<const Algorithm*>> candidates_of(const Question& question, int ranks) {
  const Shape shape{question.collective, ranks, question.root, 1, Finish::none};
  const Tiers tiers = Tiers::flat(ranks);
  std::vector<const Algorithm*> candidates;
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != question.collective) continue;
    names.push_back(algorithm.name);
    const std::string refused = refusal_of(algorithm, shape, tiers);
    if (refused.empty() && (question.pin.empty() || question.pin == algorithm.name)) candidates.push_back(&algorithm);
    if (!refused.empty() && question.pin == algorithm.name)
      return failure(Code::invalid_argument, "algorithm: %s cannot run here: %s", std::string(algorithm.name).c_str(),
                     refused.c_str());
  }
  if (candidates.empty())
    return failure(Code::invalid_argument, "algorithm: %.64s cannot run here: %s has no such algorithm; it has %s",
                   escaped(question.pin).c_str(), std::string(name_of(question.collective)).c_str(),
                   listed(names, question.pin).c_str());
  return candidates;
}

}  // namespace

Result<DevicePredictions> predict_on_devices(const Question& question, std::uint64_t bytes, const DeviceModel& model) {
  SETO_ASSIGN(const std::vector<const Algorithm*> candidates, candidates_of(question, model.ranks));
  DevicePredictions predictions;
  for (const Algorithm* algorithm : candidates) {
    SETO_ASSIGN(std::optional<DevicePrediction> made, best_of(*algorithm, question, bytes, model));
    if (!made) continue;
    SETO_ASSIGN(const DeviceOutcome chain, Programs(*algorithm, question, bytes, model.ranks).run_without_bytes(model));
    made->least_seconds = std::max(chain.longest_ns(), busy_ns(made->outcome, model.devices)) * 1e-9;
    if (made->marked) made->least_seconds = std::min(made->seconds, made->least_seconds);  // the chain has flags
    predictions.push_back(std::move(*made));
  }
  if (predictions.empty())
    return failure(Code::invalid_argument, "no slice of %ju bytes between %d GPUs has slots of 64 MiB or less",
                   std::uintmax_t{bytes}, model.ranks);
  std::stable_sort(predictions.begin(), predictions.end(),
                   [](const DevicePrediction& a, const DevicePrediction& b) { return a.seconds < b.seconds; });
  return predictions;
}

Result<DevicePrediction> predict_slices(const Question& question, std::uint64_t bytes, const DeviceModel& model,
                                        std::uint64_t slice_elements) {
  SETO_ASSIGN(const std::vector<const Algorithm*> candidates, candidates_of(question, model.ranks));
  const Programs programs(*candidates.front(), question, bytes, model.ranks);
  const DeviceSlices slices{slice_elements, model.blocks, kDeviceSlots};
  SETO_ASSIGN(DeviceOutcome outcome, programs.run(slices, model.devices));
  return prediction_of(*candidates.front(), question, bytes, programs, slices, std::move(outcome));
}

Result<DevicePrediction> predict_as_cut_now(const Question& question, std::uint64_t bytes, const DeviceModel& model) {
  SETO_TRY(candidates_of(question, model.ranks).status());
  Question asked = question;
  asked.ranks = model.ranks;
  asked.bytes = part_bytes(question.collective, bytes, model.ranks);
  SETO_ASSIGN(const Choice choice, choose(asked, Tiers::flat(model.ranks), model.costs));
  if (std::optional<DevicePrediction> marked = marked_of(*choice.algorithm, question, bytes, model)) return std::move(*marked);
  const Programs programs(*choice.algorithm, question, bytes, model.ranks);
  const std::size_t capacity = Workspaces::channel_capacity(static_cast<std::size_t>(model.ranks));
  const std::uint64_t element = size_of(question.type);
  const bool lends = !programs.lent().channels.empty();
  SliceRequest request{
      programs.longest() * element, choice.cut.slice_bytes, element, kGrainBytes / element, capacity, model.blocks,
      programs.lent().all};
  if (request.lends_all) request.slice_bytes = lent_slice_bytes(request.longest_bytes);
  DeviceSlice slice = first_slice(request);
  for (int tries = 0; tries < kTriesToFit; ++tries) {
    const DeviceSlices slices{slice.elements, slice.blocks, std::max(kDeviceSlots, programs.stages() + 1), false, lends};
    SETO_ASSIGN(const std::size_t workspace, programs.workspace(slices));
    if (workspace <= capacity) {
      SETO_ASSIGN(DeviceOutcome outcome, programs.run(slices, model.devices));
      return prediction_of(*choice.algorithm, question, bytes, programs, slices, std::move(outcome));
    }
    if (!shorten(slice, request, workspace)) break;
  }
  return failure(Code::invalid_argument, "%s does not fit into a workspace of %zu bytes",
                 std::string(choice.algorithm->name).c_str(), kWorkspaceSize);
}

Result<DeviceSize> predict_size(const Question& question, std::uint64_t bytes, const DeviceModel& model) {
  DeviceSize size;
  SETO_ASSIGN(size.fastest, predict_on_devices(question, bytes, model));
  SETO_ASSIGN(size.now, predict_as_cut_now(question, bytes, model));
  return size;
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
      return 1;
    case Collective::barrier:
      return 0;
    default:
      return (n - 1) / n;
  }
}

}  // namespace seto
