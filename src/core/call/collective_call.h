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

// One collective as the caller states it: sizes in elements, arrays alive until the call returns.
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
  std::span<const std::uint64_t> displacements;  // of the output parts; empty: one after another
  std::uint32_t deadline_ms = 0;                 // 0: the communicator's
  int algorithm = 0;                             // id, 0: chosen
  int codec = 0;                                 // id, 0: the communicator's
  bool deterministic = false;
  std::uint32_t message_tag = 0;
  bool waited_for_next = false;  // by the thread that issues it on a stream
  CallerMark mark;
  std::shared_ptr<ErrorFeedback> feedback;  // null: what a codec leaves out is lost
  Status wrong;  // found before it came here: it is rejected under its number, so that the other ranks hear of it
};

// One rank gives, or gets, what all others get or give.
bool is_rooted(Collective collective);
// A rank has a part of the whole on one side, or on both.
bool has_parts(Collective collective);

// Bytes of a scalar of pre-multiplied sums: one value of the type's accumulator.
std::size_t scalar_size(DataType type);

// The same call once more, down to the buffers, with nothing that has to be looked at each time.
inline bool repeats(const Call& last, const Call& call) {
  return last.input == call.input && last.output == call.output && last.count == call.count &&
         last.collective == call.collective && last.type == call.type && last.op == call.op && last.root == call.root &&
         last.algorithm == call.algorithm && last.codec == call.codec && last.deterministic == call.deterministic &&
         call.counts.empty() && call.displacements.empty() && last.counts.empty() && call.feedback == nullptr && call.wrong.ok();
}

// Whether the call makes sense by itself, on this rank. The text names the argument.
Status check(const Call& call, Rank rank, int ranks);

// Same memory for input and output, as far as this rank has both. Only after check().
InPlace in_place(const Call& call, Rank rank, int ranks);

// Bytes of this rank's input and output.
std::uint64_t input_bytes(const Call& call, Rank rank, int ranks);
std::uint64_t output_bytes(const Call& call, Rank rank, int ranks);

// "all_reduce of 1048576 float, sum": what a mismatch prints of both sides.
std::string describe(Collective collective, std::uint64_t count, DataType type, ReduceOp op, Rank root);

}  // namespace seto
