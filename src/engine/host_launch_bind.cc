// How a lowered program becomes a launch.

#include <algorithm>

#include "src/engine/host_launch.h"
#include "src/engine/lending.h"
#include "src/plan/chunk_map.h"
#include "src/plan/first_encodings.h"

namespace seto {
namespace {

constexpr std::size_t kAlignment = 64;
// Below it a copy into a slot costs less than waiting until the other has read.
constexpr std::uint64_t kWorthLending = 16 << 10;
// Below it a copy costs less than saying where a message belongs.
constexpr std::uint64_t kWorthPlacing = 16 << 10;

std::size_t padded(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Result<std::unique_ptr<HostLaunch>> HostLaunch::bind(const BindRequest& request, Circle& circle) {
  std::unique_ptr<HostLaunch> launch(new HostLaunch());
  const Program& program = *request.program;
  launch->rank_ = program.rank;
  launch->order_ = request.order;
  launch->stages_ = program.stages();
  launch->element_size_ = size_of(request.type);
  launch->slice_elements_ = std::max<std::uint64_t>(1, request.tuning.slice_elements);
  if (request.shape.codec != 0) SETO_TRY(launch->bind_codec(request));
  launch->slices_ = request.layout->slices(launch->slice_elements_);
  const std::uint64_t slice = std::min(launch->slice_elements_, request.layout->longest());
  launch->piece_stride_ = padded(slice * launch->element_size_);
  if (launch->coding_ != nullptr) launch->coded_stride_ = padded(launch->coding_->size(slice));
  launch->scratch_stride_ = padded(request.layout->longest() * launch->element_size_);
  launch->reduce_ = reduce_function(request.type, request.op);
  Lending lending(program, request.shape, request.in_place);
  for (const Lane& lane : program.lanes) {
    if (lane.step_count != 1) return failure(Code::internal, "the host engine runs lowered programs: one step a lane");
    SETO_TRY(launch->bind_step(request, program.steps[lane.first_step], circle, lending));
  }
  if (launch->coding_ != nullptr) launch->bind_residuals(request);
  if (program.scratch_chunks > 0)
    for (auto& scratch : launch->scratch_) {
      const std::size_t size = launch->scratch_stride_ * program.scratch_chunks;
      scratch.reset(static_cast<std::byte*>(::operator new(size, kScratchAlignment, std::nothrow)));
      if (scratch == nullptr) return failure(Code::unavailable, "out of memory: %zu bytes of scratch", size);
    }
  SETO_TRY(launch->bind_stages());
  const auto hazards = std::stable_partition(launch->placing_.begin(), launch->placing_.end(), [&](const Placing& placing) {
    const BoundStep& step = launch->steps_[placing.lane];
    const auto first = launch->dependencies_.begin() + step.first_dependency;
    return std::none_of(first, first + step.dependency_count, [](const Dependency& dependency) { return dependency.steps > 0; });
  });
  launch->placed_at_once_ = static_cast<std::size_t>(hazards - launch->placing_.begin());
  for (auto& done : launch->done_) done.assign(launch->steps_.size(), 0);
  return launch;
}

static_assert(kMostSources <= kMaxReduceSources && kMostTargets <= kMaxReduceTargets, "plans rely on it");

// Slices end where blocks do: how long they are changes no bits.
Status HostLaunch::bind_codec(const BindRequest& request) {
  std::uint32_t most_sources = 1;
  for (const Step& step : request.program->steps) most_sources = std::max<std::uint32_t>(most_sources, step.source_count);
  SETO_ASSIGN(coding_, Coding::create({request.shape.codec, request.type, request.op, most_sources}));
  slice_elements_ = (slice_elements_ + coding_->block() - 1) / coding_->block() * coding_->block();
  return {};
}

Status HostLaunch::bind_step(const BindRequest& request, const Step& step, Circle& circle, Lending& lending) {
  const Program& program = *request.program;
  if (step.source_count > kMaxReduceSources || step.target_count > kMaxReduceTargets)
    return failure(Code::invalid_usage, "a step with %u sources and %u targets is beyond the kernels' limits", step.source_count,
                   step.target_count);
  BoundStep bound;
  bound.stage = step.stage;
  bound.pieces = step.count;
  bound.source_count = step.source_count;
  bound.target_count = step.target_count;
  bound.first_source = static_cast<std::uint32_t>(sources_.size());
  bound.first_target = static_cast<std::uint32_t>(targets_.size());
  bound.divisor = step.finishes && is_integer(request.type) ? static_cast<std::uint32_t>(request.shape.ranks) : 1;
  const auto sources = program.sources(step);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].scaled) bound.scaled |= std::uint64_t{1} << i;
  bound.moves = step.source_count == 1 && bound.scaled == 0 && bound.divisor == 1;
  for (const Operand& source : sources) SETO_TRY(bind_source(request, source, circle));
  for (const Operand& target : program.targets(step)) SETO_TRY(bind_target(request, target, circle));
  bound.rounds = step.rounds;
  for (std::uint32_t i = 0; i < step.source_count; ++i)
    bound.coded_sources |= std::uint64_t{sources_[bound.first_source + i].coded ? 1U : 0U} << i;
  for (std::uint32_t i = 0; i < step.target_count; ++i)
    bound.coded_targets |= std::uint64_t{targets_[bound.first_target + i].coded ? 1U : 0U} << i;
  bound.first_piece = static_cast<std::uint32_t>(lengths_.size());
  bound.first_offset = static_cast<std::uint32_t>(offsets_.size());
  bind_offsets(request, step);
  bind_lending(request, step, lending);
  bound.borrows =
      std::any_of(sources_.begin() + bound.first_source, sources_.end(), [](const Source& source) { return source.borrows; });
  bound.first_dependency = static_cast<std::uint32_t>(dependencies_.size());
  bound.dependency_count = step.dependency_count;
  for (const Dependency& dependency : program.dependencies_of(step)) dependencies_.push_back(dependency);
  steps_.push_back(bound);
  if (order_ == StepOrder::skewed) bind_placing(bound);
  return {};
}

StreamGeometry HostLaunch::geometry_of(const BindRequest& request, const Channel& channel) const {
  const std::uint64_t piece = size_of_elements(std::min(slice_elements_, request.layout->longest()), channel.coded);
  const std::uint64_t size = channel.count == 1 ? piece : stride_of(channel.coded) * channel.count;
  constexpr std::uint64_t kMost =
      ~std::uint32_t{0};  // no transport takes a slot of this size: it says so, instead of a wrapped one
  return {static_cast<std::uint32_t>(std::min(size, kMost)), request.tuning.depth, slices_, request.digest};
}

Status HostLaunch::bind_source(const BindRequest& request, const Operand& operand, Circle& circle) {
  Source source{nullptr, operand.space, -1};
  if (operand.space == Space::channel) {
    const Channel& channel = request.program->channels[operand.index];
    const StreamAddress address{static_cast<std::uint32_t>(channel.sender), channel.group, channel.port};
    SETO_ASSIGN(auto stream, circle.open_receive(address, geometry_of(request, channel)));
    source.stream = stream.get();
    source.peer = channel.sender;
    source.borrows = stream->borrows();
    source.asks_size = stream->asks_size();
    source.coded = channel.coded;
    receives_.push_back(std::move(stream));
  }
  sources_.push_back(source);
  return {};
}

Status HostLaunch::bind_target(const BindRequest& request, const Operand& operand, Circle& circle) {
  Target target{nullptr, operand.space, -1};
  if (operand.space == Space::channel) {
    const Channel& channel = request.program->channels[operand.index];
    const StreamAddress address{static_cast<std::uint32_t>(channel.sender), channel.group, channel.port};
    std::vector<std::uint32_t> receivers;
    for (const Rank receiver : request.program->receivers_of(channel)) receivers.push_back(static_cast<std::uint32_t>(receiver));
    SETO_ASSIGN(auto stream, circle.open_send(address, receivers, geometry_of(request, channel)));
    target.stream = stream.get();
    target.peer = static_cast<Rank>(receivers.front());
    target.asks_size = stream->asks_size();
    target.coded = channel.coded;
    sends_.push_back(std::move(stream));
  }
  targets_.push_back(target);
  return {};
}

void HostLaunch::bind_offsets(const BindRequest& request, const Step& step) {
  const Program& program = *request.program;
  const Layout& layout = *request.layout;
  const auto offset = [&](const Operand& operand, std::uint32_t piece) -> std::uint64_t {
    switch (operand.space) {
      case Space::input:
        return layout.input_offset(operand.index + piece) * element_size_;
      case Space::output:
        return layout.output_offset(operand.index + piece) * element_size_;
      case Space::scratch:
        return (operand.index + piece) * scratch_stride_;
      case Space::channel:
        return piece * stride_of(program.channels[operand.index].coded);
    }
    return 0;
  };
  for (std::uint32_t piece = 0; piece < step.count; ++piece) {
    lengths_.push_back(layout.length(step.chunk + piece));
    for (const Operand& source : program.sources(step)) offsets_.push_back(offset(source, piece));
    for (const Operand& target : program.targets(step)) offsets_.push_back(offset(target, piece));
  }
}

// Every rank of a reduction has each chunk in its input.
void HostLaunch::bind_residuals(const BindRequest& request) {
  const std::vector<std::vector<bool>> first = first_encodings(*request.program);
  for (std::size_t s = 0; s < steps_.size(); ++s)
    for (std::uint32_t piece = 0; piece < steps_[s].pieces; ++piece) {
      const std::uint32_t chunk = request.program->steps[s].chunk + piece;
      const std::optional<std::uint32_t> index = first[s][piece] ? input_index(request.shape, rank_, chunk) : std::nullopt;
      residuals_.push_back(index ? request.layout->input_offset(*index) * coding_->residual_size() : kNoResidual);
    }
}

// Of the step whose targets were bound last.
void HostLaunch::bind_lending(const BindRequest& request, const Step& step, Lending& lending) {
  const std::uint64_t bytes = request.layout->length(step.chunk) * element_size_;
  if (bytes < kWorthLending) return;
  const std::optional<Operand> place = lending.place_of(step);
  if (!place) return;
  const std::uint64_t at =
      place->space == Space::input ? request.layout->input_offset(place->index) : request.layout->output_offset(place->index);
  for (std::size_t i = targets_.size() - step.target_count; i < targets_.size(); ++i) {
    Target& target = targets_[i];
    if (target.stream == nullptr || target.coded || !target.stream->lends()) continue;
    target.lends = true;
    target.space = place->space;
    target.lent_offset = at * element_size_;
    lending_.push_back(target);
  }
}

// Of the step that was bound last: one piece, from one stream to one place, and what it sends on is lent from there.
void HostLaunch::bind_placing(const BoundStep& step) {
  const std::size_t size = lengths_[step.first_piece] * element_size_;
  const Source& source = sources_[step.first_source];
  if (!step.moves || (step.coded_sources | step.coded_targets) != 0 || step.pieces != 1 || size < kWorthPlacing ||
      source.stream == nullptr || !source.stream->places())
    return;
  Placing placing{source.stream, static_cast<std::uint32_t>(steps_.size() - 1), Space::channel, 0, size};
  for (std::uint32_t i = 0; i < step.target_count; ++i) {
    const Target& target = targets_[step.first_target + i];
    if (target.lends) continue;
    if (target.stream != nullptr || placing.space != Space::channel) return;
    placing.space = target.space;
    placing.offset = offsets_[step.first_offset + step.source_count + i];
  }
  if (placing.space == Space::output) placing_.push_back(placing);
}

Status HostLaunch::bind_stages() {
  std::uint32_t lane = 0;
  for (std::uint32_t stage = 0; stage < stages_; ++stage) {
    stage_lanes_.push_back(lane);
    while (lane < steps_.size() && steps_[lane].stage == stage) ++lane;
  }
  stage_lanes_.push_back(lane);
  if (lane < steps_.size()) return failure(Code::internal, "a lowered program's lanes are not in the order of their stages");
  return {};
}

}  // namespace seto
