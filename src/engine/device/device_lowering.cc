#include "src/engine/device/device_lowering.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "src/engine/coding.h"

namespace seto {
namespace {

using kernels::ChannelEnd;
using kernels::DeviceOperand;
using kernels::DeviceProgram;
using kernels::DeviceStep;
using kernels::OperandSpace;

constexpr std::uint64_t kLine = 128;  // bytes that a GPU moves at once; parts and pieces begin at multiples
constexpr std::uint32_t kMostOperands = kernels::kMostDeviceOperands / 2;  // sources, and targets

static_assert(kernels::kMarkSliceBits == kSliceBits);
static_assert(std::is_trivially_copyable_v<DeviceProgram> && std::is_trivially_copyable_v<DeviceStep>);

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

OperandSpace space_of(Space space) {
  switch (space) {
    case Space::input:
      return OperandSpace::input;
    case Space::output:
      return OperandSpace::output;
    case Space::scratch:
      return OperandSpace::scratch;
    case Space::channel:
      break;
  }
  return OperandSpace::channel;
}

OperandSpace lent_space_of(Space space) { return space == Space::input ? OperandSpace::lent_input : OperandSpace::lent_output; }

class DeviceLowering {
 public:
  DeviceLowering(const BoundProgram& program, const DeviceCut& cut, const DeviceEnds& ends)
      : program_(program), cut_(cut), peers_(ends.peers) {
    for (const std::vector<ChannelEnd>& of_stream : ends.streams) {
      first_ends_.push_back(static_cast<std::uint32_t>(ends_.size()));
      ends_.insert(ends_.end(), of_stream.begin(), of_stream.end());
    }
    first_ends_.push_back(static_cast<std::uint32_t>(ends_.size()));
  }

  Status add_steps() {
    for (const Lane& lane : program_.lanes) SETO_TRY(add_step(program_.steps[lane.first_step]));
    const std::uint32_t stages = steps_.empty() ? 0 : steps_.back().stage + 1;
    std::uint32_t step = 0;
    for (std::uint32_t stage = 0; stage <= stages; ++stage) {
      while (step < steps_.size() && steps_[step].stage < stage) ++step;
      first_steps_.push_back(step);
    }
    return {};
  }

  std::vector<std::byte> written(const DeviceGeometry& geometry) {
    DeviceProgram begin;
    begin.type = static_cast<std::uint32_t>(program_.type);
    begin.op = static_cast<std::uint32_t>(program_.op);
    begin.codec = program_.codec;
    begin.blocks = cut_.blocks;
    begin.stages = static_cast<std::uint32_t>(first_steps_.size() - 1);
    begin.peer_count = static_cast<std::uint32_t>(peers_.size());
    begin.slices = program_.slices;
    begin.slice_elements = program_.slice_elements;
    begin.part_elements = geometry.part_elements;
    begin.element_size = static_cast<std::uint32_t>(program_.element_size);
    if (program_.codec != 0) begin.residual_size = static_cast<std::uint32_t>(size_of(residual_type(program_.type)));
    begin.piece_stride = geometry.piece_stride;
    begin.coded_piece_stride = geometry.coded_piece_stride;
    begin.lends = lends_ ? 1 : 0;
    begin.marked = cut_.marked ? 1 : 0;
    bytes_.resize(sizeof(DeviceProgram));
    begin.steps = append(steps_);
    begin.ends = append(ends_);
    begin.peers = append(peers_);
    begin.lengths = append(program_.lengths);
    begin.residuals = append(program_.residuals);
    begin.offsets = append(offsets_);
    begin.operands = append(operands_);
    begin.first_steps = append(first_steps_);
    begin.size = bytes_.size();
    std::memcpy(bytes_.data(), &begin, sizeof begin);
    return std::move(bytes_);
  }

 private:
  Status add_step(const BoundStep& step) {
    DeviceStep made;
    made.stage = cut_.delay_of(step.stage);
    made.pieces = step.pieces;
    made.first_operand = static_cast<std::uint32_t>(operands_.size());
    made.source_count = step.source_count;
    made.first_piece = step.first_piece;
    made.first_offset = static_cast<std::uint32_t>(offsets_.size());
    made.divisor = step.divisor;
    made.scaled = step.scaled;
    made.coded_sources = step.coded_sources;
    made.moves = step.moves ? std::uint16_t{1} : std::uint16_t{0};
    made.rounds = step.rounds ? std::uint16_t{1} : std::uint16_t{0};
    for (const BoundSource& source : program_.sources_of(step)) {
      const bool receives = source.space == Space::channel;
      const bool lent = receives && program_.streams[source.stream].lent;
      operands_.push_back({lent ? OperandSpace::lent_input : space_of(source.space), receives ? first_ends_[source.stream] : 0});
    }
    std::vector<std::uint32_t> origins;  // of each target here: the bound target, which several receivers of a message share
    for (std::uint32_t i = 0; i < step.target_count; ++i)
      if (!is_lent(step, i)) SETO_TRY(add_target(step, i, made, origins));
    const std::uint32_t written = made.target_count;
    for (std::uint32_t i = 0; i < step.target_count; ++i)
      if (is_lent(step, i)) SETO_TRY(add_target(step, i, made, origins));
    made.lent_targets = made.target_count - written;
    lends_ |= made.lent_targets > 0;
    for (std::uint32_t piece = 0; piece < step.pieces; ++piece) {
      const std::uint64_t* const offset = &program_.offsets[step.first_offset + piece * (step.source_count + step.target_count)];
      offsets_.insert(offsets_.end(), offset, offset + step.source_count);
      for (const std::uint32_t i : origins)
        offsets_.push_back(is_lent(step, i) ? target_of(step, i).lent_offset : offset[step.source_count + i]);
    }
    steps_.push_back(made);
    return {};
  }

  [[nodiscard]] const BoundTarget& target_of(const BoundStep& step, std::uint32_t i) const {
    return program_.targets[step.first_target + i];
  }
  [[nodiscard]] bool is_lent(const BoundStep& step, std::uint32_t i) const {
    const BoundTarget& target = target_of(step, i);
    return target.space == Space::channel && program_.streams[target.stream].lent;
  }

  // An operand for each receiver of a message.
  Status add_target(const BoundStep& step, std::uint32_t i, DeviceStep& made, std::vector<std::uint32_t>& origins) {
    const BoundTarget& target = target_of(step, i);
    const bool sends = target.space == Space::channel;
    const std::uint32_t end = sends ? first_ends_[target.stream + 1] : 1;
    for (std::uint32_t e = sends ? first_ends_[target.stream] : 0; e < end; ++e) {
      if (made.target_count == kMostOperands)
        return failure(Code::invalid_usage, "rank %d: a step with more than %u targets is beyond the kernels' limits",
                       program_.rank, kMostOperands);
      operands_.push_back({is_lent(step, i) ? lent_space_of(target.lent_space) : space_of(target.space), e});
      made.coded_targets |= (step.coded_targets >> i & 1) << made.target_count++;
      origins.push_back(i);
    }
    return {};
  }

  // The place of the table in the program.
  template <class T>
  std::uint32_t append(const std::vector<T>& table) {
    const std::size_t place = rounded_up(bytes_.size(), alignof(std::max_align_t));
    bytes_.resize(place + table.size() * sizeof(T));
    if (!table.empty()) std::memcpy(&bytes_[place], table.data(), table.size() * sizeof(T));
    return static_cast<std::uint32_t>(place);
  }

  const BoundProgram& program_;
  const DeviceCut& cut_;
  const std::vector<kernels::PeerEnd>& peers_;
  std::vector<ChannelEnd> ends_;
  std::vector<std::uint32_t> first_ends_;  // by stream, and one more
  std::vector<DeviceStep> steps_;
  std::vector<DeviceOperand> operands_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint32_t> first_steps_;
  bool lends_ = false;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<DeviceGeometry> DeviceGeometry::of(const BoundProgram& program, const DeviceCut& cut) {
  if (cut.blocks == 0) return failure(Code::invalid_argument, "a call on a GPU needs at least one block");
  const std::uint64_t slice = std::max<std::uint64_t>(1, std::min(program.slice_elements, cut.longest));
  const std::uint64_t unit = program.codec != 0 ? facts_of(codec_of(program.codec)).block : kLine / program.element_size;
  DeviceGeometry geometry;
  geometry.part_elements = rounded_up((slice + cut.blocks - 1) / cut.blocks, unit);
  const std::uint64_t most = std::min(geometry.part_elements, slice);
  const std::uint64_t plain = rounded_up(program.size_of_elements(most, false), kLine);
  const std::uint64_t coded = program.codec != 0 ? rounded_up(program.size_of_elements(most, true), kLine) : 0;
  if (std::max(plain, coded) > kLargestSlot)
    return failure(Code::invalid_argument, "a block's share of a slice is %ju bytes, the limit is %u: use shorter slices",
                   std::uintmax_t{std::max(plain, coded)}, kLargestSlot);
  geometry.piece_stride = static_cast<std::uint32_t>(plain);
  geometry.coded_piece_stride = static_cast<std::uint32_t>(coded);
  return geometry;
}

Result<std::vector<std::byte>> lower_to_device(const BoundProgram& program, const DeviceCut& cut, const DeviceEnds& ends) {
  if (!program.skewed)
    return failure(Code::invalid_usage, "rank %d: a plain program cannot run on a GPU; lower it", program.rank);
  if (ends.streams.size() != program.streams.size())
    return failure(Code::internal, "rank %d: %zu streams, and places for %zu of them", program.rank, program.streams.size(),
                   ends.streams.size());
  if (program.steps.size() > kernels::kMostDeviceSteps || program.slices > kMaxSlices)
    return failure(Code::invalid_usage, "rank %d: %zu steps and %ju slices are beyond the kernels' limits (%u and %ju)",
                   program.rank, program.steps.size(), std::uintmax_t{program.slices}, kernels::kMostDeviceSteps,
                   std::uintmax_t{kMaxSlices});
  SETO_ASSIGN(const DeviceGeometry geometry, DeviceGeometry::of(program, cut));
  DeviceLowering lowering(program, cut, ends);
  SETO_TRY(lowering.add_steps());
  return lowering.written(geometry);
}

}  // namespace seto
