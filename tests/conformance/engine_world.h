#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/coding.h"
#include "src/engine/host_executor.h"
#include "src/engine/lowering.h"
#include "tests/support/faulty_peer_group.h"
#include "tests/support/flows.h"
#include "tests/support/peer_groups.h"

// Ranks in one thread. Their executors take turns, and the results of their inputs are known.
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
  bool owes = false;  // errors of codecs are added in the next operation
  double unit = 1;    // factor of all inputs

  [[nodiscard]] std::string text() const {
    return std::string(name_of(algorithm->collective)) + "/" + std::string(algorithm->name) + " of " + std::to_string(ranks) +
           " ranks, " + std::to_string(count) + " " + std::string(name_of(type)) + ", slices of " +
           std::to_string(slice_elements) + (in_place == InPlace::yes ? ", in place" : "") +
           (codec ? ", in " + std::string(facts_of(*codec).name) : "") + (owes ? ", with residuals" : "");
  }
};

// Two ranks per node where the algorithm needs tiers.
inline Tiers tiers_for(const Job& job) {
  if (job.algorithm->name != "hierarchical") return Tiers::flat(job.ranks);
  std::vector<Home> homes;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(job.ranks); ++rank) homes.push_back({rank / 2, 0});
  return Tiers::of(homes);
}

inline Shape shape_of(const Job& job) {
  Shape shape{job.algorithm->collective, job.ranks, job.root, 1, Finish::none};
  shape.pieces = job.algorithm->pieces(shape, tiers_for(job));
  if (!job.codec) return shape;
  shape.codec = plan_number(*job.codec);
  shape.coded_tiers = static_cast<std::uint8_t>(1U << (tiers_for(job).count() - 1));
  return shape;
}

// Small whole numbers: every type represents them and their results exactly, in any order of operations.
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

// For a call in place: the offset of the smaller buffer in the larger one, in elements; empty if the collective has no such
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

// In place where the collective has such a call on this rank.
inline InPlace in_place_of(const Job& job, Rank rank) {
  return job.in_place == InPlace::yes && shared_at(job, rank) ? InPlace::yes : InPlace::no;
}

inline int folded(const Job& job, std::uint64_t index, std::uint64_t operation) {
  int result = value(0, index, operation);
  for (Rank rank = 1; rank < job.ranks; ++rank) {
    const int other = value(rank, index, operation);
    result = job.op == ReduceOp::sum ? result + other : job.op == ReduceOp::prod ? result * other : std::max(result, other);
  }
  return result;
}

// The expected value of that element of the output; empty: it is not defined.
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

// Compared with memcmp, because a loop over the bytes is slow under a sanitizer.
inline bool all_are(const std::pmr::vector<std::byte>& bytes, std::byte one) {
  return bytes.empty() || (bytes.front() == one && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// The program of a rank, and the buffers that fit it.
inline BoundProgram bound_program(const Job& job, Rank rank) {
  const Shape shape = shape_of(job);
  const InPlace in_place = in_place_of(job, rank);
  const Layout layout = Layout::uniform(shape, rank, job.count, static_cast<std::uint32_t>(64 / size_of(job.type)));
  const Program plain = build_program(*job.algorithm, shape, tiers_for(job), rank, in_place);
  const Program program = lower(plain, shape, in_place, rules_for(job.type));
  return bind_program({&program, shape, in_place, &layout, job.type, job.op, 77, {job.slice_elements, 2}}).value();
}

// One rank's buffers for one operation, with its input.
struct Buffers {
  Buffers(const Job& job, Rank rank, std::uint64_t operation,
          std::pmr::memory_resource& resource = *std::pmr::get_default_resource())
      : separate_input(&resource), memory(&resource) {
    const std::size_t element = size_of(job.type);
    const Sizes sizes = sizes_of(job);
    const bool in_place = in_place_of(job, rank) == InPlace::yes;
    const std::uint64_t shift = in_place ? *shared_at(job, rank) * element : 0;
    separate_input.resize(in_place ? 0 : sizes.input * element);
    memory.resize((in_place ? std::max(sizes.input, sizes.output) : sizes.output) * element, std::byte{0xee});
    input = in_place ? memory.data() + (sizes.input < sizes.output ? shift : 0) : separate_input.data();
    output = memory.data() + (sizes.output < sizes.input ? shift : 0);
    for (std::uint64_t i = 0; i < sizes.input; ++i) store(job.type, input + i * element, value(rank, i, operation) * job.unit);
  }

  [[nodiscard]] std::vector<std::byte> result(const Job& job) const {
    return {output, output + sizes_of(job).output * size_of(job.type)};
  }
  // The caller writes into its buffers again: a late reader reads this.
  void overwrite() {
    std::fill(separate_input.begin(), separate_input.end(), std::byte{0xdd});
    std::fill(memory.begin(), memory.end(), std::byte{0xdd});
  }

  std::pmr::vector<std::byte> separate_input;  // empty in place
  std::pmr::vector<std::byte> memory;          // the output, and in place the input
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// One rank: an executor, and up to two of its operations in flight.
class Worker {
 public:
  struct Operation {
    Buffers buffers;
    Executor::Run run{};
    std::vector<std::byte> result{};
  };

  Worker(const Job& job, Rank rank, PeerGroup& peer_group,
         std::pmr::memory_resource& resource = *std::pmr::get_default_resource())
      : job_(job), rank_(rank), peer_group_(peer_group), resource_(resource) {
    executor_ = std::move(HostExecutor::open(bound_program(job, rank), job.order, peer_group)).value();
    if (job.owes) residuals_.resize(sizes_of(job).input * size_of(residual_type(job.type)));
  }

  // A turn: a bounded piece of work of one operation in flight. True: the operation ended.
  bool turn(std::uint64_t last, std::uint64_t random) {
    const std::uint64_t window = job_.owes ? 1 : kWindow;  // residuals are of one operation at a time
    if (begun_ < last && begun_ < done_ + window && random % 3 == 0) begin(++begun_);
    const std::uint64_t under_way = begun_ - done_;
    if (under_way == 0) return false;
    const std::uint64_t operation = done_ + 1 + random / 3 % under_way;
    Operation& each = operations_[operation - 1];
    if (each.run.finished || !executor_->advance(each.run, static_cast<std::uint32_t>(1 + random / 9 % 5))) return false;
    each.result = each.buffers.result(job_);
    each.buffers.overwrite();
    while (done_ < begun_ && operations_[done_].run.finished) ++done_;
    peer_group_.complete(done_);
    return true;
  }

  // Whether the buffers changed after the caller got them back.
  [[nodiscard]] bool touched_late() const {
    return !std::all_of(operations_.begin(), operations_.begin() + static_cast<std::ptrdiff_t>(done_),
                        [](const Operation& each) { return all_are(each.buffers.memory, std::byte{0xdd}); });
  }

  // The number of wrong elements in operations that ended.
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

  // Abandons the operation in flight and returns its buffers to the caller, which overwrites them. Returns true if no member
  // reads them.
  bool withdraw() {
    Operation& each = operations_[done_];
    if (!executor_->withdraw(each.run)) return false;
    each.buffers.overwrite();
    return true;
  }
  [[nodiscard]] bool withdrawn_is_touched() const { return !all_are(operations_[done_].buffers.memory, std::byte{0xdd}); }
  // Whether part of the output was received or computed.
  [[nodiscard]] bool has_output() const { return begun_ > done_ && !all_are(operations_[done_].buffers.memory, std::byte{0xee}); }

  [[nodiscard]] std::uint64_t done() const { return done_; }
  // The result of an operation that ended.
  [[nodiscard]] const std::vector<std::byte>& result(std::uint64_t operation) const { return operations_[operation - 1].result; }
  [[nodiscard]] Executor::Wait waits_at() const {
    if (begun_ == done_) return {-1, "has not begun", ""};
    return executor_->waits_at(operations_[done_].run);
  }

 private:
  void begin(std::uint64_t operation) {
    Operation& each = operations_.emplace_back(Operation{Buffers(job_, rank_, operation, resource_)});
    each.run.operands.input = each.buffers.input;
    each.run.operands.output = each.buffers.output;
    each.run.operands.operation = operation;
    if (job_.owes) each.run.operands.residual = residuals_.data();
    peer_group_.status().begin({operation, 77, 0, {}});
  }

  Job job_;
  Rank rank_;
  PeerGroup& peer_group_;
  std::pmr::memory_resource& resource_;
  std::unique_ptr<Executor> executor_;
  std::vector<Operation> operations_;
  std::vector<std::byte> residuals_;
  std::uint64_t begun_ = 0;
  std::uint64_t done_ = 0;
};

// For World::drive(), where everything should end. A delayed message needs some tens of turns.
inline constexpr std::uint64_t kPatience = 200'000;

// All ranks of a job over the (faulty) groups of a transport.
class World {
 public:
  World(const PeerGroupTransport& transport, const Job& job, const std::function<Faults(PeerGroupMember&)>& faults)
      : members_(transport.make({.members = static_cast<std::uint32_t>(job.ranks), .peer_groups = 2})) {
    for (const auto& member : members_)
      peer_groups_.push_back(std::make_unique<FaultyPeerGroup>(member->peer_group(), faults(*member)));
    for (Rank rank = 0; rank < job.ranks; ++rank)
      workers_.push_back(std::make_unique<Worker>(job, rank, *peer_groups_[static_cast<std::size_t>(rank)],
                                                  members_[static_cast<std::size_t>(rank)]->lendable_memory()));
  }

  // Random turns until all operations have ended on all ranks, or nothing has moved for `patience` turns. With kPatience it goes
  // on until nothing has moved for half a minute: what was written to a socket may arrive only when the kernel gets a core back.
  bool drive(std::uint64_t last, std::uint64_t seed, std::uint64_t patience) {
    std::mt19937_64 random(seed);
    Deadline until = Deadline::after_ms(kPatienceMs);
    for (std::uint64_t idle = 0; idle < patience || (patience == kPatience && !until.passed()); ++idle) {
      const std::uint64_t before = sent();
      if (workers_[random() % workers_.size()]->turn(last, random()) || sent() != before) {
        idle = 0;
        until = Deadline::after_ms(kPatienceMs);
      }
      bool all = true;
      for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
        const bool done = workers_[rank]->done() == last;
        if (done) members_[rank]->attend();
        all = all && done;
      }
      if (all) return true;
    }
    return false;
  }

  [[nodiscard]] std::uint64_t sent() const {
    std::uint64_t sum = 0;
    for (const auto& peer_group : peer_groups_) sum += peer_group->sent();
    return sum;
  }

  std::vector<std::unique_ptr<PeerGroupMember>> members_;
  std::vector<std::unique_ptr<FaultyPeerGroup>> peer_groups_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace seto::support
