#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/device/reduce.h"
#include "src/engine/coding.h"
#include "src/plan/hazards.h"
#include "src/plan/layout.h"
#include "src/plan/plan.h"
#include "src/plan/verify.h"
#include "transports/transport.h"

namespace seto {

// Geometry of a launch: what both ends of a stream agree on.
struct LaunchTuning {
  std::uint64_t slice_elements = 1;
  std::uint32_t depth = 2;
};

struct BindRequest {
  const Program* program = nullptr;  // lowered
  Shape shape;
  InPlace in_place = InPlace::no;
  const Layout* layout = nullptr;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t digest = 0;
  LaunchTuning tuning;
  StepOrder order = StepOrder::skewed;
};

// The buffers and the number of one operation.
struct Operands {
  const void* input = nullptr;
  void* output = nullptr;
  const void* scalar = nullptr;  // of the contributor, in the accumulator type; null: nothing is scaled
  // After expect_residuals(). One for each element of the input, of residual_type: what this rank's encodings left out, added to
  // what it encodes there. One operation at a time. Null: none. A plan without a codec does not look at it.
  void* residual = nullptr;
  std::uint64_t operation = 0;
  // What this rank alone may choose, each time anew: how slots and the user's buffer are written.
  Store slots = Store::cached;
  Store results = Store::cached;
};

// A lowered program bound to streams, kernels and offsets: once for each (communicator, shape), then run for any number of
// operations, of which two may be under way. Never blocks.
class HostLaunch final {
 public:
  // The execution of one operation: cheap to make, kept by whoever waits for it.
  struct Run {
    Operands operands;
    std::uint64_t round = 0;
    std::uint32_t lane = 0;
    std::uint64_t placed = 0;  // 1 + how far it was when it last said where messages belong
    bool finished = false;
  };

  static Result<std::unique_ptr<HostLaunch>> bind(const BindRequest& request, Circle& circle);

  // Goes as far as it can without waiting; true once every step of every slice is done. Call again whenever something may have
  // moved. `steps` bounds the work of one call, so that a progress pass can serve several launches.
  bool advance(Run& run, std::uint32_t steps);

  // After a failure, before the caller may have its buffers back: takes back what this operation lent, and nothing comes into
  // them any more. True: nobody reads it.
  bool withdraw(const Run& run);

  // Before the first run with residuals. Of a plan without a codec: nothing.
  void expect_residuals() {
    if (coding_ != nullptr) coding_->expect_residuals();
  }

  // Whether anything comes here from a peer.
  [[nodiscard]] bool receives() const { return !receives_.empty(); }

  // What a blocked run waits for, in words of a user: slices and steps count from 1.
  struct Wait {
    Rank peer = -1;    // -1: for none
    std::string text;  // "waits for slice 3 of 4 from rank 2"
    std::string step;  // "step 14 of 30"; empty: it waits at none
  };
  [[nodiscard]] Wait waits_at(const Run& run) const;

 private:
  struct Source {
    ReceiveStream* stream = nullptr;  // null: memory
    Space space = Space::input;
    Rank peer = -1;
    bool borrows = false;
    bool asks_size = false;
    bool coded = false;
  };
  struct Target {
    SendStream* stream = nullptr;
    Space space = Space::output;
    Rank peer = -1;
    bool lends = false;  // space and lent_offset say what
    bool asks_size = false;
    bool coded = false;
    std::uint64_t lent_offset = 0;
  };
  struct BoundStep {
    std::uint32_t stage = 0;
    std::uint32_t pieces = 1;
    std::uint32_t first_source = 0, source_count = 0;
    std::uint32_t first_target = 0, target_count = 0;
    std::uint32_t first_piece = 0;   // in lengths_: `pieces` of them
    std::uint32_t first_offset = 0;  // in offsets_: for each piece, sources then targets
    std::uint64_t scaled = 0;
    std::uint32_t divisor = 1;
    bool moves = false;  // a plain copy
    bool rounds = false;
    std::uint64_t coded_sources = 0, coded_targets = 0;
    bool borrows = false;
    std::uint32_t first_dependency = 0, dependency_count = 0;
  };

  // A message that a step only copies to the caller's buffer: it may come there by itself once the step's hazards are past.
  struct Placing {
    ReceiveStream* stream = nullptr;
    std::uint32_t lane = 0;
    Space space = Space::output;
    std::uint64_t offset = 0;  // bytes
    std::size_t size = 0;
  };

  // One operation, as its steps look at it.
  struct Frame {
    std::uint64_t operation;
    std::array<std::byte*, 4> memories;  // by space
    std::array<Store, 4> stores;
    const void* scalar;
    std::byte* residual;

    [[nodiscard]] std::byte* memory(Space space) const { return memories[static_cast<std::size_t>(space)]; }
    [[nodiscard]] Store store(Space space) const { return stores[static_cast<std::size_t>(space)]; }
  };
  // Where a step reads and writes a slice, before the offset of a piece. Not cleared: it costs more than a short message.
  struct Places {
    struct Written {
      std::byte* data;
      Store store;
    };
    void write(std::uint32_t target, Written place) {
      target_index[written] = target;
      targets[written++] = place;
    }

    std::array<const std::byte*, kMaxReduceSources> sources;
    std::array<Written, kMaxReduceTargets> targets;
    std::array<std::uint32_t, kMaxReduceTargets> target_index;
    std::uint32_t written = 0;
  };

  struct AlignedDelete {
    void operator()(std::byte* memory) const { ::operator delete(memory, kScratchAlignment); }
  };
  static constexpr std::align_val_t kScratchAlignment{64};
  static constexpr std::uint64_t kNoResidual = ~std::uint64_t{0};

  HostLaunch() = default;
  Status bind_codec(const BindRequest& request);
  Status bind_step(const BindRequest& request, const Step& step, Circle& circle, class Lending& lending);
  Status bind_source(const BindRequest& request, const Operand& operand, Circle& circle);
  Status bind_target(const BindRequest& request, const Operand& operand, Circle& circle);
  void bind_lending(const BindRequest& request, const Step& step, Lending& lending);
  void bind_placing(const BoundStep& step);
  StreamGeometry geometry_of(const BindRequest& request, const Channel& channel) const;
  void bind_residuals(const BindRequest& request);
  void bind_offsets(const BindRequest& request, const Step& step);
  Status bind_stages();

  // Peer -1: this step waits for none.
  [[nodiscard]] Wait waits_at(const Run& run, std::uint32_t lane, std::uint64_t slice) const;

  bool advance_skewed(Run& run, std::uint32_t steps);
  bool advance_only_slice(Run& run, std::uint32_t steps);
  bool advance_ready(Run& run, std::uint32_t steps);
  Frame frame_of(const Operands& operands) const;
  bool try_step(const BoundStep& step, const Frame& frame, std::uint64_t slice);
  // Says where messages belong, as far ahead as the run is.
  void place_ahead(Run& run, const Frame& frame);
  // Slices whose place no step before that lane's will touch any more.
  [[nodiscard]] std::uint64_t slices_past_hazards(const BoundStep& step, const Run& run) const;
  bool hold(const BoundStep& step, Mark mark);
  // Bytes that the message of a step to a channel fills in a slice.
  [[nodiscard]] std::size_t message_size(const BoundStep& step, std::uint64_t slice, bool coded) const;
  [[nodiscard]] std::size_t size_of_elements(std::uint64_t count, bool coded) const {
    return coded ? coding_->size(count) : count * element_size_;
  }
  [[nodiscard]] std::size_t stride_of(bool coded) const { return coded ? coded_stride_ : piece_stride_; }
  [[nodiscard]] bool ran_through(const Run& run) const;
  [[nodiscard]] bool all_taken(std::uint64_t operation) const;
  void perform(const BoundStep& step, const Frame& frame, const Places& places, std::uint64_t slice);

  std::vector<BoundStep> steps_;  // one a lane, in static order
  std::vector<Source> sources_;
  std::vector<Target> targets_;
  std::vector<std::uint64_t> lengths_;    // elements of each piece
  std::vector<std::uint64_t> residuals_;  // of a plan with a codec, bytes: where those of each piece are, or kNoResidual
  std::vector<std::uint64_t> offsets_;    // bytes
  std::vector<Dependency> dependencies_;
  std::vector<std::unique_ptr<SendStream>> sends_;
  std::vector<std::unique_ptr<ReceiveStream>> receives_;
  std::vector<Target> lending_;   // those of targets_ that lend
  std::vector<Placing> placing_;  // those without hazards first
  std::size_t placed_at_once_ = 0;
  std::array<std::vector<std::uint64_t>, 2> done_;  // readiness order: slices by lane, for each of two operations under way
  std::array<std::unique_ptr<std::byte, AlignedDelete>, 2> scratch_;
  std::vector<std::uint32_t> stage_lanes_;  // the first lane of each stage, and the number of lanes

  StepOrder order_ = StepOrder::skewed;
  std::uint32_t stages_ = 1;
  std::uint64_t slices_ = 1;
  std::uint64_t slice_elements_ = 1;
  std::size_t element_size_ = 1;
  std::size_t piece_stride_ = 0;  // bytes between the pieces of one message
  std::size_t coded_stride_ = 0;  // the same where they are encoded
  std::size_t scratch_stride_ = 0;
  std::unique_ptr<Coding> coding_;  // null: the plan has no codec
  ReduceFunction reduce_ = nullptr;
  Rank rank_ = 0;
};

}  // namespace seto
