#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/host_launch.h"
#include "src/engine/lowering.h"
#include "tests/support/peer_groups.h"
#include "tests/support/faulty_peer_group.h"
#include "tests/support/flows.h"

// Ranks in one thread, whose launches take turns, with inputs of which everybody knows what must come out.
namespace seto::support {

struct Job {
  const Algorithm* algorithm = nullptr;
  int ranks = 2;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t count = 0;
  std::uint64_t slice_elements = 16;
  StepOrder order = StepOrder::skewed;
  Rank root = 0;
  InPlace in_place = InPlace::no;
  std::optional<Codec> codec{};
  bool owes = false;  // what codecs leave out goes into the next operation
  double unit = 1;    // of all inputs

  [[nodiscard]] std::string text() const {
    return std::string(name_of(algorithm->collective)) + "/" + std::string(algorithm->name) + " of " + std::to_string(ranks) +
           " ranks, " + std::to_string(count) + " " + std::string(name_of(type)) + ", slices of " +
           std::to_string(slice_elements) + (in_place == InPlace::yes ? ", in place" : "") +
           (codec ? ", in " + std::string(facts_of(*codec).name) : "") + (owes ? ", with residuals" : "");
  }
};

// Two nodes a site where the algorithm wants tiers.
inline Tiers tiers_for(const Job& job) {
  if (job.algorithm->name != "hierarchical") return Tiers::flat(job.ranks);
  std::vector<Home> homes;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(job.ranks); ++rank) homes.push_back({rank / 2, 0});
  return Tiers::of(homes);
}

inline Shape shape_of(const Job& job) {
  Shape shape{job.algorithm->collective, job.ranks, job.root, 1, Finish::none};
  shape.pieces = job.algorithm->pieces(shape);
  if (!job.codec) return shape;
  shape.codec = plan_number(*job.codec);
  shape.coded_tiers = static_cast<std::uint8_t>(1U << (tiers_for(job).count() - 1));
  return shape;
}

// Small whole numbers, so that every type holds them and their results, in any order, exactly.
inline int value(Rank rank, std::uint64_t index, std::uint64_t operation) {
  return 1 + static_cast<int>(mixed(index * 64 + static_cast<std::uint64_t>(rank) + operation * 7919) % 2);
}

inline void store(DataType type, std::byte* at, double number) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  const auto single = static_cast<float>(number);
  switch (type) {
    case DataType::uint8:
      return put(static_cast<std::uint8_t>(number));
    case DataType::int32:
      return put(static_cast<int>(number));
    case DataType::float64:
      return put(number);
    case DataType::bfloat16:
      return put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(single) >> 16));
    default:
      return put(single);
  }
}

struct Sizes {
  std::uint64_t input, output;  // elements
};

inline Sizes sizes_of(const Job& job) {
  const std::uint64_t all = job.count * static_cast<std::uint64_t>(job.ranks);
  switch (job.algorithm->collective) {
    case Collective::all_gather:
    case Collective::gather:
      return {job.count, all};
    case Collective::reduce_scatter:
    case Collective::scatter:
      return {all, job.count};
    case Collective::all_to_all:
      return {all, all};
    default:
      return {job.count, job.count};
  }
}

// Of a call in place: where the smaller buffer lies in the larger one, in elements; nothing where the collective knows no such
// call.
inline std::optional<std::uint64_t> shared_at(const Job& job, Rank rank) {
  const std::uint64_t own = static_cast<std::uint64_t>(rank) * job.count;
  switch (job.algorithm->collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return own;
    case Collective::gather:
    case Collective::scatter:
      return rank == job.root ? std::optional(own) : std::nullopt;
    case Collective::all_to_all:
    case Collective::barrier:
      return std::nullopt;
    default:
      return 0;
  }
}

inline int folded(const Job& job, std::uint64_t index, std::uint64_t operation) {
  int result = value(0, index, operation);
  for (Rank rank = 1; rank < job.ranks; ++rank) {
    const int other = value(rank, index, operation);
    result = job.op == ReduceOp::sum ? result + other : job.op == ReduceOp::prod ? result * other : std::max(result, other);
  }
  return result;
}

// What that element of the output is to be; nothing: it is nobody's business.
inline std::optional<int> expected(const Job& job, Rank rank, std::uint64_t index, std::uint64_t operation) {
  const auto part = static_cast<Rank>(job.count == 0 ? 0 : index / job.count);
  const std::uint64_t within = job.count == 0 ? 0 : index % job.count;
  const std::uint64_t own = static_cast<std::uint64_t>(rank) * job.count + index;
  switch (job.algorithm->collective) {
    case Collective::all_reduce:
      return folded(job, index, operation);
    case Collective::reduce:
      return rank == job.root ? std::optional(folded(job, index, operation)) : std::nullopt;
    case Collective::broadcast:
      return value(job.root, index, operation);
    case Collective::all_gather:
      return value(part, within, operation);
    case Collective::gather:
      return rank == job.root ? std::optional(value(part, within, operation)) : std::nullopt;
    case Collective::reduce_scatter:
      return folded(job, own, operation);
    case Collective::scatter:
      return value(job.root, own, operation);
    case Collective::all_to_all:
      return value(part, static_cast<std::uint64_t>(rank) * job.count + within, operation);
    case Collective::barrier:
      return std::nullopt;
  }
  return std::nullopt;
}

// Looked at as a whole: a sanitizer looks at each byte that a loop touches.
inline bool all_are(const std::vector<std::byte>& bytes, std::byte one) {
  return bytes.empty() || (bytes.front() == one && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// One rank: a launch, and up to two operations of it under way.
class Worker {
 public:
  struct Operation {
    HostLaunch::Run run;
    std::vector<std::byte> input, output, result;  // in place all is in output
  };

  Worker(const Job& job, Rank rank, Circle& circle) : job_(job), rank_(rank), circle_(circle) {
    const Shape shape = shape_of(job);
    const Layout layout = Layout::uniform(shape, rank, job.count, static_cast<std::uint32_t>(64 / size_of(job.type)));
    if (job.in_place == InPlace::yes && !shared_at(job, rank)) job_.in_place = InPlace::no;
    const InPlace in_place = job_.in_place;
    const Program plain = build_program(*job.algorithm, shape, tiers_for(job), rank, in_place);
    const Program program = lower(plain, shape, in_place, rules_for(job.type));
    const BindRequest request{&program, shape, in_place, &layout, job.type, job.op, 77, {job.slice_elements, 2}, job.order};
    launch_ = std::move(HostLaunch::bind(request, circle)).value();
    if (job.owes) residuals_.resize(sizes_of(job).input * size_of(residual_type(job.type)));
  }

  // A turn: a bounded piece of work of one of the operations under way. True: something ended.
  bool turn(std::uint64_t last, std::uint64_t random) {
    const std::uint64_t window = job_.owes ? 1 : circle_.window();  // residuals are of one operation at a time
    if (begun_ < last && begun_ < done_ + window && random % 3 == 0) begin(++begun_);
    const std::uint64_t under_way = begun_ - done_;
    if (under_way == 0) return false;
    const std::uint64_t operation = done_ + 1 + random / 3 % under_way;
    Operation& each = operations_[operation - 1];
    if (each.run.finished || !launch_->advance(each.run, static_cast<std::uint32_t>(1 + random / 9 % 5))) return false;
    // The caller may do with its buffers what it likes from here on: whoever reads them late reads this.
    const auto* const output = static_cast<const std::byte*>(each.run.operands.output);
    each.result.assign(output, output + sizes_of(job_).output * size_of(job_.type));
    std::fill(each.input.begin(), each.input.end(), std::byte{0xdd});
    std::fill(each.output.begin(), each.output.end(), std::byte{0xdd});
    while (done_ < begun_ && operations_[done_].run.finished) ++done_;
    circle_.complete(done_);
    return true;
  }

  // Of what the caller has written to its buffers since it had them back.
  [[nodiscard]] bool touched_late() const {
    return !std::all_of(operations_.begin(), operations_.begin() + static_cast<std::ptrdiff_t>(done_),
                        [](const Operation& each) { return all_are(each.output, std::byte{0xdd}); });
  }

  // Elements that are not what they should be, in operations that ended.
  [[nodiscard]] std::uint64_t wrong() const {
    std::uint64_t count = 0;
    for (std::uint64_t operation = 1; operation <= done_; ++operation) {
      const std::size_t element = size_of(job_.type);
      const auto& output = operations_[operation - 1].result;
      for (std::uint64_t i = 0; i < output.size() / element; ++i) {
        const std::optional<int> number = expected(job_, rank_, i, operation);
        if (!number.has_value()) continue;
        std::byte bytes[8];
        store(job_.type, bytes, *number);
        if (std::memcmp(bytes, &output[i * element], element) != 0) ++count;
      }
    }
    return count;
  }

  // Gives the operation under way up, and its buffers back to the caller, who writes to them. True: nobody reads them any more.
  bool withdraw() {
    Operation& each = operations_[done_];
    if (!launch_->withdraw(each.run)) return false;
    std::fill(each.input.begin(), each.input.end(), std::byte{0xdd});
    std::fill(each.output.begin(), each.output.end(), std::byte{0xdd});
    return true;
  }
  [[nodiscard]] bool withdrawn_is_touched() const { return !all_are(operations_[done_].output, std::byte{0xdd}); }
  // Of its output something has come, or been computed.
  [[nodiscard]] bool has_output() const { return begun_ > done_ && !all_are(operations_[done_].output, std::byte{0xee}); }

  [[nodiscard]] std::uint64_t done() const { return done_; }
  // Of an operation that ended.
  [[nodiscard]] const std::vector<std::byte>& result(std::uint64_t operation) const { return operations_[operation - 1].result; }
  [[nodiscard]] HostLaunch::Wait waits_at() const {
    if (begun_ == done_) return {-1, "has not begun", ""};
    return launch_->waits_at(operations_[done_].run);
  }

 private:
  void begin(std::uint64_t operation) {
    const std::size_t element = size_of(job_.type);
    const Sizes sizes = sizes_of(job_);
    Operation& each = operations_.emplace_back();
    const bool in_place = job_.in_place == InPlace::yes;
    const std::uint64_t shift = in_place ? *shared_at(job_, rank_) * element : 0;
    each.input.resize(in_place ? 0 : sizes.input * element);
    each.output.resize((in_place ? std::max(sizes.input, sizes.output) : sizes.output) * element, std::byte{0xee});
    std::byte* const input = in_place ? each.output.data() + (sizes.input < sizes.output ? shift : 0) : each.input.data();
    for (std::uint64_t i = 0; i < sizes.input; ++i) store(job_.type, input + i * element, value(rank_, i, operation) * job_.unit);
    each.run.operands.input = input;
    each.run.operands.output = each.output.data() + (sizes.output < sizes.input ? shift : 0);
    each.run.operands.operation = operation;
    if (job_.owes) each.run.operands.residual = residuals_.data();
    circle_.begin({operation, 77, 0, {}});
  }

  Job job_;
  Rank rank_;
  Circle& circle_;
  std::unique_ptr<HostLaunch> launch_;
  std::vector<Operation> operations_;
  std::vector<std::byte> residuals_;
  std::uint64_t begun_ = 0;
  std::uint64_t done_ = 0;
};

// All ranks of a job over the (faulty) circles of a transport.
class World {
 public:
  World(const CircleTransport& transport, const Job& job, const std::function<Faults(CircleMember&)>& faults)
      : members_(transport.make({.members = static_cast<std::uint32_t>(job.ranks), .circles = 2})) {
    for (const auto& member : members_) circles_.push_back(std::make_unique<FaultyCircle>(member->circle(), faults(*member)));
    for (Rank rank = 0; rank < job.ranks; ++rank)
      workers_.push_back(std::make_unique<Worker>(job, rank, *circles_[static_cast<std::size_t>(rank)]));
  }

  // Random turns until all operations have ended everywhere, or nothing has for so many turns that nothing will.
  bool drive(std::uint64_t last, std::uint64_t seed, std::uint64_t patience) {
    std::mt19937_64 random(seed);
    for (std::uint64_t idle = 0; idle < patience; ++idle) {
      const std::uint64_t before = sent();
      if (workers_[random() % workers_.size()]->turn(last, random()) || sent() != before) idle = 0;
      bool all = true;
      for (const auto& worker : workers_) all = all && worker->done() == last;
      if (all) return true;
    }
    return false;
  }

  [[nodiscard]] std::uint64_t sent() const {
    std::uint64_t sum = 0;
    for (const auto& circle : circles_) sum += circle->sent();
    return sum;
  }

  std::vector<std::unique_ptr<CircleMember>> members_;
  std::vector<std::unique_ptr<FaultyCircle>> circles_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace seto::support
