#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/plan/hazards.h"
#include "src/plan/layout.h"
#include "src/plan/plan.h"
#include "src/plan/step_order.h"
#include "transports/geometry.h"

namespace seto {

// The part of a stream's geometry that is chosen, not derived. Both ends use the same.
struct LaunchTuning {
  std::uint64_t slice_elements = 1;  // rounded up to whole blocks of the codec
  std::uint32_t depth = 2;
  std::uint64_t window_bytes = 0;  // of a stream; need not be the same. 0: the transport decides
};

// A channel whose messages stay in the caller's buffers at the sender, where a peer reads them without being told where in this
// process they are (device_lending.h). At the receiver the place says nothing.
struct LentChannel {
  bool is_lent = false;
  Operand place;
};

struct BindRequest {
  const Program* program = nullptr;  // lowered for every executor but the block interpreter, which also runs plain ones
  Shape shape;
  InPlace in_place = InPlace::no;
  const Layout* layout = nullptr;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t digest = 0;
  LaunchTuning tuning;
  std::span<const LentChannel> lent{};  // by channel; empty: the executor of the host decides for each message
};

// This rank's end of a channel.
struct BoundStream {
  StreamAddress address;
  StreamGeometry geometry;
  bool coded = false;
  bool lent = false;  // it has no slots on GPUs
  // The host lends a message of so many bytes or more. Its sender decides that alone: a receiver reads what a message says.
  std::uint64_t lends_from = 16 << 10;
  std::vector<std::uint32_t> receivers;
};

// Where a step reads: memory, or a message of a stream.
struct BoundSource {
  Space space = Space::input;
  bool coded = false;
  std::uint32_t stream = 0;  // Space::channel: index in BoundProgram::streams
};

// The memory to which a step writes. The content of a message may also stay in the caller's buffers from then on until the
// operation
// ends; then a sender may lend it from there (decision 7). The lent place is where slice 0 begins.
struct BoundTarget {
  Space space = Space::output;
  bool coded = false;
  std::uint32_t stream = 0;
  Space lent_space = Space::channel;  // channel: it cannot be lent
  std::uint64_t lent_offset = 0;      // bytes
};

struct BoundStep {
  std::uint32_t stage = 0;
  std::uint32_t pieces = 1;  // chunks
  std::uint32_t first_source = 0, source_count = 0;
  std::uint32_t first_target = 0, target_count = 0;
  std::uint32_t first_piece = 0;   // in BoundProgram::lengths: `pieces` of them
  std::uint32_t first_offset = 0;  // in BoundProgram::offsets: for each piece, sources then targets
  std::uint32_t first_dependency = 0, dependency_count = 0;
  // Bit k of a mask is about source or target k.
  std::uint64_t scaled = 0;  // sources that are multiplied by the rank's scalar
  std::uint64_t coded_sources = 0, coded_targets = 0;
  std::uint32_t divisor = 1;
  bool moves = false;   // a plain copy
  bool rounds = false;  // targets that are not coded get the value that the codec leaves
};

// A message that its step only copies to the caller's output: it may be received there, once the slices that the step depends on
// are done. If the step also sends it on, that holds only where the sender lends it from the output.
struct BoundPlacement {
  std::uint32_t lane = 0;
  std::uint64_t offset = 0;  // bytes, in the output
  std::uint64_t size = 0;    // bytes of all slices
};

// A program with addresses, lengths and streams filled in, for one call shape on one rank: all that an executor needs to know
// besides buffers and streams. Plain data, made without a stream or a transport. An address is a space (a buffer of the caller,
// scratch, or a message), an offset in bytes, and the slice: slice s of a piece in memory begins s * slice_elements further on.
struct BoundProgram {
  static constexpr std::uint64_t kNoResidual = ~std::uint64_t{0};

  Rank rank = 0;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint8_t codec = 0;          // the codec's number in plans; 0: none
  std::uint32_t most_sources = 1;  // of a step
  std::uint64_t slices = 1;
  std::uint64_t slice_elements = 1;
  std::size_t element_size = 1;
  std::size_t piece_stride = 0;  // bytes between the pieces of one message
  std::size_t coded_stride = 0;  // the same where they are encoded
  std::size_t scratch_size = 0;  // bytes; each operation under way needs its own

  std::vector<Lane> lanes;
  std::vector<BoundStep> steps;  // lane by lane
  std::vector<BoundSource> sources;
  std::vector<BoundTarget> targets;
  std::vector<std::uint64_t> lengths;    // elements of each piece
  std::vector<std::uint64_t> residuals;  // with a codec: where the residuals of each piece begin, in bytes, or kNoResidual
  std::vector<std::uint64_t> offsets;    // bytes
  std::vector<Dependency> dependencies;
  std::vector<BoundStream> streams;
  std::vector<BoundPlacement> placements;
  std::optional<SkewedOrder> skewed;  // empty: the program is not lowered

  [[nodiscard]] std::span<const BoundSource> sources_of(const BoundStep& step) const {
    return {sources.data() + step.first_source, step.source_count};
  }
  [[nodiscard]] std::span<const BoundTarget> targets_of(const BoundStep& step) const {
    return {targets.data() + step.first_target, step.target_count};
  }
  [[nodiscard]] std::span<const Dependency> dependencies_of(const BoundStep& step) const {
    return {dependencies.data() + step.first_dependency, step.dependency_count};
  }
  [[nodiscard]] std::size_t stride_of(bool coded) const { return coded ? coded_stride : piece_stride; }
  [[nodiscard]] std::size_t size_of_elements(std::uint64_t count, bool coded) const;
  // Bytes that a message of the step fills in that slice.
  [[nodiscard]] std::size_t message_size(const BoundStep& step, std::uint64_t slice, bool coded) const;
  // Whether anything arrives here from a peer.
  [[nodiscard]] bool receives() const;
};

// Fails if the shape's codec does not take the type or the operation, or if a step is beyond the limits of the kernels.
Result<BoundProgram> bind_program(const BindRequest& request);

}  // namespace seto
