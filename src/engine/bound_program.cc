#include "src/engine/bound_program.h"

#include <algorithm>

#include "src/device/reduce.h"
#include "src/engine/coding.h"
#include "src/engine/lending.h"
#include "src/plan/chunk_map.h"
#include "src/plan/first_encodings.h"

namespace seto {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t padded(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

static_assert(kMostSources <= kMaxReduceSources && kMostTargets <= kMaxReduceTargets, "plans rely on it");

class Binder {
 public:
  explicit Binder(const BindRequest& request) : request_(request), program_(*request.program), layout_(*request.layout) {}

  Result<BoundProgram> run() {
    SETO_TRY(set_geometry());
    for (const Channel& channel : program_.channels) bind_stream(channel);
    for (std::size_t c = 0; c < request_.lent.size(); ++c) bound_.streams[c].lent = request_.lent[c].is_lent;
    for (const Step& step : program_.steps) SETO_TRY(bind_step(step));
    if (bound_.skewed) {
      bind_lending();
      for (std::uint32_t lane = 0; lane < bound_.lanes.size(); ++lane) bind_placement(lane);
    }
    bind_residuals();
    return std::move(bound_);
  }

 private:
  Status set_geometry() {
    bound_.rank = program_.rank;
    bound_.type = request_.type;
    bound_.op = request_.op;
    bound_.codec = request_.shape.codec;
    bound_.element_size = size_of(request_.type);
    bound_.slice_elements = std::max<std::uint64_t>(1, request_.tuning.slice_elements);
    for (const Step& step : program_.steps) bound_.most_sources = std::max<std::uint32_t>(bound_.most_sources, step.source_count);
    if (bound_.codec != 0) {
      SETO_TRY(Coding::check({bound_.codec, bound_.type, bound_.op, bound_.most_sources}));
      // Slices end where blocks do, so that their length changes no bits.
      const std::uint64_t block = facts_of(codec_of(bound_.codec)).block;
      bound_.slice_elements = (bound_.slice_elements + block - 1) / block * block;
    }
    bound_.slices = layout_.slices(bound_.slice_elements);
    bound_.piece_stride = padded(bound_.size_of_elements(longest_slice(), false));
    if (bound_.codec != 0) bound_.coded_stride = padded(bound_.size_of_elements(longest_slice(), true));
    scratch_stride_ = padded(layout_.longest() * bound_.element_size);
    bound_.scratch_size = scratch_stride_ * program_.scratch_chunks;
    bound_.lanes = program_.lanes;
    if (Result<SkewedOrder> order = SkewedOrder::of(program_); order.ok()) bound_.skewed = std::move(order).value();
    return {};
  }

  [[nodiscard]] std::uint64_t longest_slice() const { return std::min(bound_.slice_elements, layout_.longest()); }

  void bind_stream(const Channel& channel) {
    const std::uint64_t piece = bound_.size_of_elements(longest_slice(), channel.coded);
    const std::uint64_t size = channel.count == 1 ? piece : bound_.stride_of(channel.coded) * channel.count;
    // No transport accepts a slot of this size, and it reports that. A size that wrapped around would be accepted.
    constexpr std::uint64_t kMost = ~std::uint32_t{0};
    BoundStream& stream = bound_.streams.emplace_back();
    stream.address = {static_cast<std::uint32_t>(channel.sender), channel.group, channel.port};
    stream.geometry = {static_cast<std::uint32_t>(std::min(size, kMost)), request_.tuning.depth, bound_.slices, request_.digest,
                       request_.tuning.window_bytes};
    stream.coded = channel.coded;
    for (const Rank receiver : program_.receivers_of(channel)) stream.receivers.push_back(static_cast<std::uint32_t>(receiver));
  }

  [[nodiscard]] bool is_coded(const Operand& operand) const {
    return operand.space == Space::channel && program_.channels[operand.index].coded;
  }

  Status bind_step(const Step& step) {
    if (step.source_count > kMaxReduceSources || step.target_count > kMaxReduceTargets)
      return failure(Code::invalid_usage, "a step with %u sources and %u targets is beyond the kernels' limits",
                     step.source_count, step.target_count);
    BoundStep& bound = bound_.steps.emplace_back();
    bound.stage = step.stage;
    bound.pieces = step.count;
    bound.first_source = static_cast<std::uint32_t>(bound_.sources.size());
    bound.first_target = static_cast<std::uint32_t>(bound_.targets.size());
    for (const Operand& source : program_.sources(step)) {
      const bool scaled = source.scaled || step.verb == Verb::scale;
      bound.scaled |= std::uint64_t{scaled ? 1U : 0U} << bound.source_count;
      bound.coded_sources |= std::uint64_t{is_coded(source) ? 1U : 0U} << bound.source_count++;
      bound_.sources.push_back({source.space, is_coded(source), source.space == Space::channel ? source.index : 0});
    }
    for (const Operand& target : program_.targets(step)) {
      bound.coded_targets |= std::uint64_t{is_coded(target) ? 1U : 0U} << bound.target_count++;
      bound_.targets.push_back({target.space, is_coded(target), target.space == Space::channel ? target.index : 0});
    }
    const bool divides = (step.finishes || step.verb == Verb::finish) && is_integer(request_.type);
    bound.divisor = divides ? static_cast<std::uint32_t>(request_.shape.ranks) : 1;
    bound.moves = bound.source_count == 1 && bound.scaled == 0 && bound.divisor == 1;
    bound.rounds = step.rounds || step.verb == Verb::round;
    bound.first_piece = static_cast<std::uint32_t>(bound_.lengths.size());
    bound.first_offset = static_cast<std::uint32_t>(bound_.offsets.size());
    for (std::uint32_t piece = 0; piece < step.count; ++piece) {
      bound_.lengths.push_back(layout_.length(step.chunk + piece));
      for (const Operand& source : program_.sources(step)) bound_.offsets.push_back(offset_of(source, piece));
      for (const Operand& target : program_.targets(step)) bound_.offsets.push_back(offset_of(target, piece));
    }
    bound.first_dependency = static_cast<std::uint32_t>(bound_.dependencies.size());
    bound.dependency_count = step.dependency_count;
    for (const Dependency& dependency : program_.dependencies_of(step)) bound_.dependencies.push_back(dependency);
    return {};
  }

  [[nodiscard]] std::uint64_t offset_of(const Operand& operand, std::uint32_t piece) const {
    switch (operand.space) {
      case Space::input:
        return layout_.input_offset(operand.index + piece) * bound_.element_size;
      case Space::output:
        return layout_.output_offset(operand.index + piece) * bound_.element_size;
      case Space::scratch:
        return (operand.index + piece) * scratch_stride_;
      case Space::channel:
        return piece * bound_.stride_of(is_coded(operand));
    }
    return 0;
  }

  void bind_lending() {
    Lending lending(program_, request_.shape, request_.in_place);
    for (std::size_t s = 0; s < bound_.steps.size(); ++s) {
      const std::optional<Operand> place = lending.place_of(program_.steps[s]);
      if (!place) continue;
      const BoundStep& step = bound_.steps[s];
      for (std::uint32_t i = 0; i < step.target_count; ++i) {
        BoundTarget& target = bound_.targets[step.first_target + i];
        if (target.space != Space::channel || target.coded) continue;
        target.lent_space = place->space;
        target.lent_offset = offset_of(*place, 0);
      }
    }
    for (BoundTarget& target : bound_.targets) {
      if (target.space != Space::channel || !bound_.streams[target.stream].lent) continue;
      const Operand& place = request_.lent[target.stream].place;
      target.lent_space = place.space;
      target.lent_offset = offset_of(place, 0);
    }
  }

  // One piece moves from one stream to one place in the output, and maybe to other streams.
  void bind_placement(std::uint32_t lane) {
    const BoundStep& step = bound_.steps[bound_.lanes[lane].first_step];
    if (!step.moves || (step.coded_sources | step.coded_targets) != 0 || step.pieces != 1) return;
    if (bound_.sources_of(step).front().space != Space::channel) return;
    std::optional<std::uint64_t> offset;
    for (std::uint32_t i = 0; i < step.target_count; ++i) {
      const Space space = bound_.targets[step.first_target + i].space;
      if (space == Space::channel) continue;
      if (space != Space::output || offset) return;
      offset = bound_.offsets[step.first_offset + step.source_count + i];
    }
    if (offset) bound_.placements.push_back({lane, *offset, bound_.lengths[step.first_piece] * bound_.element_size});
  }

  // Every rank of a reduction has each chunk in its input.
  void bind_residuals() {
    if (bound_.codec == 0) return;
    bound_.residuals.assign(bound_.lengths.size(), BoundProgram::kNoResidual);
    if (!bound_.skewed) return;
    const std::vector<std::vector<bool>> first = first_encodings(program_);
    for (std::size_t s = 0; s < bound_.steps.size(); ++s)
      for (std::uint32_t piece = 0; piece < bound_.steps[s].pieces; ++piece) {
        if (!first[s][piece]) continue;
        const std::optional<std::uint32_t> index = input_index(request_.shape, program_.rank, program_.steps[s].chunk + piece);
        if (!index) continue;
        bound_.residuals[bound_.steps[s].first_piece + piece] =
            layout_.input_offset(*index) * size_of(residual_type(request_.type));
      }
  }

  const BindRequest& request_;
  const Program& program_;
  const Layout& layout_;
  BoundProgram bound_;
  std::size_t scratch_stride_ = 0;
};

}  // namespace

// The pieces of one message stand a stride apart. Later ones may be shorter, or have no part in the last slice.
std::size_t BoundProgram::message_size(const BoundStep& step, std::uint64_t slice, bool coded) const {
  const std::uint64_t begin = slice * slice_elements;
  for (std::uint32_t piece = step.pieces; piece-- > 0;) {
    const std::uint64_t length = lengths[step.first_piece + piece];
    if (length <= begin) continue;
    return piece * stride_of(coded) + size_of_elements(std::min(slice_elements, length - begin), coded);
  }
  return 0;
}

std::size_t BoundProgram::size_of_elements(std::uint64_t count, bool coded) const {
  return coded ? encoded_size(codec_of(codec), count) : count * element_size;
}

bool BoundProgram::receives() const {
  return std::any_of(sources.begin(), sources.end(), [](const BoundSource& source) { return source.space == Space::channel; });
}

Result<BoundProgram> bind_program(const BindRequest& request) { return Binder(request).run(); }

}  // namespace seto
