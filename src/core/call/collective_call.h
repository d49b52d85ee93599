#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/record/flight_recorder.h"
#include "src/plan/hazards.h"

namespace seto {

class ErrorFeedback;

// One collective as the caller states it. Sizes are in elements; the arrays stay valid until the call returns.
struct Call {
  Collective collective = Collective::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::uint64_t count = 0;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Rank root = 0;
  const void* scalar = nullptr;                  // premul_sum: one value of the accumulator type
  std::span<const std::uint64_t> counts;         // uneven parts; empty: `count` each
  std::span<const std::uint64_t> displacements;  // of the output parts; empty: parts are adjacent
  std::uint32_t deadline_ms = 0;                 // 0: the communicator's deadline
  int algorithm = 0;                             // id; 0: the library chooses
  int codec = 0;                                 // id; 0: the communicator's setting
  bool deterministic = false;
  std::uint32_t message_tag = 0;
  bool waited_for_next = false;  // the issuing thread waits for the stream next
  CallerMark mark;
  std::shared_ptr<ErrorFeedback> feedback;  // null: the codec's error is discarded
  // An error found before the call reached the communicator. The call takes its operation number and is rejected, so that the
  // other ranks are told.
  Status wrong;
};

// True if one root rank gives or receives what all others receive or give.
bool is_rooted(Collective collective);
// True if the input or the output of a rank is one part of the whole.
bool has_parts(Collective collective);

// Bytes of a scalar of pre-multiplied sums: one value of the type's accumulator.
std::size_t scalar_size(DataType type);

// True if the call is identical to the last one, buffers included, and has nothing that must be checked at every call.
inline bool repeats(const Call& last, const Call& call) {
  return last.input == call.input && last.output == call.output && last.count == call.count &&
         last.collective == call.collective && last.type == call.type && last.op == call.op && last.root == call.root &&
         last.algorithm == call.algorithm && last.codec == call.codec && last.deterministic == call.deterministic &&
         call.counts.empty() && call.displacements.empty() && last.counts.empty() && call.feedback == nullptr && call.wrong.ok();
}

// Checks the call on this rank alone. The error text names the argument.
Status check(const Call& call, Rank rank, int ranks);

// True for each side on which this rank uses the same memory for input and output. Call only after check().
InPlace in_place(const Call& call, Rank rank, int ranks);

// Bytes of this rank's input and output.
std::uint64_t input_bytes(const Call& call, Rank rank, int ranks);
std::uint64_t output_bytes(const Call& call, Rank rank, int ranks);

// "all_reduce of 1048576 float, sum": the text that a mismatch prints for both sides.
std::string describe(Collective collective, std::uint64_t count, DataType type, ReduceOp op, Rank root);

// True for sums of floats whose type the codec accepts. `number` is the codec's number in plans; 0 is no codec.
bool takes_codec(std::uint8_t number, Collective collective, DataType type, ReduceOp op);

// The flight recorder's entry for a call that was bound like this.
RecordedCall recorded(const Call& call, const BoundAs& bound);

}  // namespace seto
