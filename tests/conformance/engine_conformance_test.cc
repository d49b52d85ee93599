// The host engine over circles that behave, dawdle, reorder, break off or lie. One thread drives all ranks in a random order of
// turns; whatever the medium does, a rank ends with the right result, an error, or a wait that it can name.

#include <bit>
#include <cstring>
#include <optional>

#include "algorithms/algorithm.h"
#include "src/engine/host_launch.h"
#include "src/engine/lowering.h"
#include "tests/support/conformance.h"
#include "tests/support/faulty_circle.h"

namespace seto::support {
namespace {

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

  [[nodiscard]] std::string text() const {
    return std::string(name_of(algorithm->collective)) + "/" + std::string(algorithm->name) + " of " + std::to_string(ranks) +
           " ranks, " + std::to_string(count) + " " + std::string(name_of(type)) + ", slices of " +
           std::to_string(slice_elements);
  }
};

// Two nodes a site where the algorithm wants tiers.
Tiers tiers_for(const Job& job) {
  if (job.algorithm->name != "hierarchical") return Tiers::flat(job.ranks);
  std::vector<Home> homes;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(job.ranks); ++rank) homes.push_back({rank / 2, 0});
  return Tiers::of(homes);
}

// Small whole numbers, so that every type holds them and their results, in any order, exactly.
int value(Rank rank, std::uint64_t index, std::uint64_t operation) {
  return 1 + static_cast<int>(mixed(index * 64 + static_cast<std::uint64_t>(rank) + operation * 7919) % 2);
}

void store(DataType type, std::byte* at, int number) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  const auto single = static_cast<float>(number);
  switch (type) {
    case DataType::uint8:
      return put(static_cast<std::uint8_t>(number));
    case DataType::int32:
      return put(number);
    case DataType::float64:
      return put(static_cast<double>(number));
    case DataType::bfloat16:
      return put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(single) >> 16));
    default:
      return put(single);
  }
}

struct Sizes {
  std::uint64_t input, output;  // elements
};

Sizes sizes_of(const Job& job) {
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

int folded(const Job& job, std::uint64_t index, std::uint64_t operation) {
  int result = value(0, index, operation);
  for (Rank rank = 1; rank < job.ranks; ++rank) {
    const int other = value(rank, index, operation);
    result = job.op == ReduceOp::sum ? result + other : job.op == ReduceOp::prod ? result * other : std::max(result, other);
  }
  return result;
}

// What that element of the output is to be; nothing: it is nobody's business.
std::optional<int> expected(const Job& job, Rank rank, std::uint64_t index, std::uint64_t operation) {
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

// One rank: a launch, and up to two operations of it under way.
class Worker {
 public:
  struct Operation {
    HostLaunch::Run run;
    std::vector<std::byte> input, output, result;
  };

  Worker(const Job& job, Rank rank, Circle& circle) : job_(job), rank_(rank), circle_(circle) {
    Shape shape{job.algorithm->collective, job.ranks, job.root, 1, Finish::none};
    shape.pieces = job.algorithm->pieces(shape);
    const Layout layout = Layout::uniform(shape, rank, job.count, static_cast<std::uint32_t>(64 / size_of(job.type)));
    const Program plain = build_program(*job.algorithm, shape, tiers_for(job), rank, job.in_place);
    const Program program = lower(plain, shape, job.in_place, rules_for(job.type));
    const BindRequest request{&program, shape, job.in_place, &layout, job.type, job.op, 77, {job.slice_elements, 2}, job.order};
    launch_ = std::move(HostLaunch::bind(request, circle)).value();
  }

  // A turn: a bounded piece of work of one of the operations under way. True: something ended.
  bool turn(std::uint64_t last, std::uint64_t random) {
    if (begun_ < last && begun_ < done_ + circle_.window() && random % 3 == 0) begin(++begun_);
    const std::uint64_t under_way = begun_ - done_;
    if (under_way == 0) return false;
    const std::uint64_t operation = done_ + 1 + random / 3 % under_way;
    Operation& each = operations_[operation - 1];
    if (each.run.finished || !launch_->advance(each.run, static_cast<std::uint32_t>(1 + random / 9 % 5))) return false;
    // The caller may do with its buffers what it likes from here on: whoever reads them late reads this.
    each.result = each.output;
    std::fill(each.input.begin(), each.input.end(), std::byte{0xdd});
    std::fill(each.output.begin(), each.output.end(), std::byte{0xdd});
    while (done_ < begun_ && operations_[done_].run.finished) ++done_;
    circle_.complete(done_);
    return true;
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

  [[nodiscard]] std::uint64_t done() const { return done_; }
  [[nodiscard]] HostLaunch::Wait waits_at() const {
    if (begun_ == done_) return {-1, "has not begun", ""};
    return launch_->waits_at(operations_[done_].run);
  }

 private:
  void begin(std::uint64_t operation) {
    const std::size_t element = size_of(job_.type);
    const Sizes sizes = sizes_of(job_);
    Operation& each = operations_.emplace_back();
    each.input.resize(sizes.input * element);
    each.output.resize(sizes.output * element, std::byte{0xee});
    for (std::uint64_t i = 0; i < sizes.input; ++i) store(job_.type, &each.input[i * element], value(rank_, i, operation));
    if (job_.in_place == InPlace::yes) each.output = each.input;
    each.run.operands.input = job_.in_place == InPlace::yes ? each.output.data() : each.input.data();
    each.run.operands.output = each.output.data();
    each.run.operands.operation = operation;
    circle_.begin({operation, 77, 0, {}});
  }

  Job job_;
  Rank rank_;
  Circle& circle_;
  std::unique_ptr<HostLaunch> launch_;
  std::vector<Operation> operations_;
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

constexpr std::uint64_t kPatience = 200'000;  // turns; a delayed message needs some tens

class Engine : public OneThread {
 protected:
  // Jobs of every algorithm that exists for that many ranks, with types and sizes in turn.
  static std::vector<Job> jobs(int ranks, const std::vector<std::uint64_t>& counts) {
    constexpr DataType kTypes[] = {DataType::float32, DataType::uint8, DataType::bfloat16, DataType::int32, DataType::float64};
    constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::prod};
    std::vector<Job> jobs;
    for (const Algorithm& algorithm : algorithms())
      for (const std::uint64_t count : counts) {
        const std::size_t turn = jobs.size();
        Job job{&algorithm, ranks, kTypes[turn % std::size(kTypes)], kOps[turn % std::size(kOps)], count};
        job.slice_elements = 64 / size_of(job.type) * (1 + turn % 3);
        job.root = static_cast<Rank>(turn % static_cast<std::size_t>(ranks));
        job.order = turn % 4 == 3 ? StepOrder::readiness : StepOrder::skewed;
        const Shape shape{algorithm.collective, ranks, job.root, 1, Finish::none};
        if (algorithm.refuses(shape, tiers_for(job)).empty()) jobs.push_back(job);
      }
    return jobs;
  }

  // Chunks long enough to be lent where members share an address space; an all_reduce also in place.
  static std::vector<Job> long_jobs(int ranks) {
    std::vector<Job> all;
    for (Job job : jobs(ranks, {std::uint64_t{17'000} * static_cast<std::uint64_t>(ranks)})) {
      job.slice_elements *= 64;
      all.push_back(job);
      if (job.algorithm->collective != Collective::all_reduce) continue;
      job.in_place = InPlace::yes;
      all.push_back(job);
    }
    return all;
  }

  void expect_right(const std::function<Faults(std::uint64_t seed)>& faults, bool dawdles) const {
    expect_right([](int ranks) { return jobs(ranks, {0, 1, 50, 700}); }, faults, dawdles);
  }
  void expect_right(const std::function<std::vector<Job>(int ranks)>& made,
                    const std::function<Faults(std::uint64_t seed)>& faults, bool dawdles) const {
    std::uint64_t seed = 1, withheld = 0;
    for (int ranks = 2; ranks <= 5; ++ranks)
      for (const Job& job : made(ranks)) {
        SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed));
        World world(*GetParam(), job, [&](CircleMember& member) { return faults(seed * 8 + member.index()); });
        if (!world.drive(4, seed, kPatience)) {
          for (const auto& worker : world.workers_) {
            const HostLaunch::Wait wait = worker->waits_at();
            ADD_FAILURE() << "done " << worker->done() << ": " << wait.text << ", " << wait.step;
          }
          return;
        }
        for (const auto& worker : world.workers_) ASSERT_EQ(worker->wrong(), 0U);
        for (const auto& circle : world.circles_) {
          ASSERT_TRUE(circle->failure().ok()) << circle->failure().text();
          withheld += circle->withheld();
        }
      }
    EXPECT_EQ(withheld > 1000, dawdles);
  }
};

TEST_P(Engine, IsRightOverEveryCircle) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed}; }, false);
}

TEST_P(Engine, IsRightWhenAnswersAreLate) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 5}; }, true);
}

TEST_P(Engine, IsRightWhereLongMessagesStayWhereTheyAre) {
  expect_right(
      long_jobs, [](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 3}; }, true);
}

TEST_P(Engine, IsRightWhenStreamsAnswerInAnyOrder) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 1, .hold = 13}; }, true);
}

// From some message on, nothing of one rank arrives: who needs it waits and says for whom, the others end well.
TEST_P(Engine, NamesWhomItWaitsForWhenARankIsCutOff) {
  std::uint64_t seed = 100, stuck = 0, whole = 0;
  for (Job job : jobs(4, {300})) {
    if (job.algorithm->collective == Collective::barrier) continue;
    job.order = StepOrder::skewed;  // where one step waits; in readiness order many do, and one of them is named
    for (std::uint64_t after : {0U, 1U, 2U, 5U, 1000U}) {
      SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed) + ", cut after " + std::to_string(after));
      const auto culprit = static_cast<std::uint32_t>(seed % 4);
      World world(*GetParam(), job, [&](CircleMember& member) {
        Faults faults{.seed = seed};
        if (member.index() == culprit) faults.cut_after = after;
        return faults;
      });
      const bool ended = world.drive(2, seed, 2000);
      whole += ended ? 1 : 0;
      bool named = ended;
      for (const auto& worker : world.workers_) {
        EXPECT_EQ(worker->wrong(), 0U);
        if (worker->done() == 2) continue;
        const HostLaunch::Wait wait = worker->waits_at();
        if (wait.peer != static_cast<Rank>(culprit)) continue;
        named = named || wait.text.find("from rank " + std::to_string(culprit)) != std::string::npos;
      }
      EXPECT_TRUE(named) << "nobody waits for rank " << culprit;
      if (ended) continue;
      ++stuck;
      // It is given up: everybody sees who left, all of it can end in the middle, and the next circle of the same memory works.
      world.circles_[culprit]->leave({6, culprit});
      for (const auto& circle : world.circles_) EXPECT_EQ(circle->fate_of(culprit).reason, 6U);
      for (auto& worker : world.workers_) worker.reset();
      for (const auto& member : world.members_) member->close(0);
      for (Rank rank = 0; rank < 4; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        world.workers_[at] = std::make_unique<Worker>(job, rank, world.members_[at]->circle(1));
      }
      ASSERT_TRUE(world.drive(1, seed, kPatience));
      for (const auto& worker : world.workers_) EXPECT_EQ(worker->wrong(), 0U);
      world.workers_.clear();
    }
  }
  EXPECT_GT(stuck, 20U);
  EXPECT_GT(whole, 0U);
}

// Stray stores into the headers of streams with slots: never a crash, and never a result made of what a header did not mean.
TEST_P(Engine, TakesGarbageForAnErrorNotForAHeader) {
  std::uint64_t seed = 1000, damages = 0, found = 0;
  for (const Job& job : jobs(3, {900})) {
    if (job.algorithm->collective == Collective::barrier) continue;
    for (int round = 0; round < 12; ++round) {
      SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed));
      World world(*GetParam(), job, [&](CircleMember& member) {
        Faults faults{.seed = seed * 4 + member.index()};
        faults.garbage = [&damages, &member](const Sent& sent, std::uint64_t random) {
          if (random % 16 != 0) return;
          ++damages;
          const Damage damage = kDamages[random / 16 % std::size(kDamages)];
          member.damage({sent.address, sent.receiver, operation_of(sent.mark), damage, random >> 40});
        };
        return faults;
      });
      const bool ended = world.drive(3, seed, 1000);
      bool failed = false;
      for (const auto& circle : world.circles_) {
        const Status reason = circle->failure();
        if (reason.ok()) continue;
        failed = true;
        EXPECT_EQ(reason.code(), Code::remote_error);
        EXPECT_TRUE(reason.text().starts_with("member ")) << reason.text();
      }
      found += failed ? 1 : 0;
      EXPECT_TRUE(ended || failed) << "it hangs, and no circle says why";
      for (const auto& worker : world.workers_) EXPECT_EQ(worker->wrong(), 0U);
    }
  }
  EXPECT_GT(damages, 1000U);
  EXPECT_GT(found, 100U);
}

INSTANTIATE_TEST_SUITE_P(All, Engine, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support
