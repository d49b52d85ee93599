// Several communicators of one context, each used by its own thread at the same time. They share connections, memory and the
// progress token. Collectives, sizes and manners are random; every element is checked.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/ranks.h"
#include "tests/support/seed.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;
#ifdef SETO_SANITIZED
constexpr int kBatches = 8;
constexpr double kMostElements = 30'000;
#else
constexpr int kBatches = 250;
constexpr double kMostElements = 300'000;
#endif
constexpr std::uint32_t kWaitMs = 40'000;
constexpr std::size_t kGuard = 16;  // elements behind a result that must not change

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27) * 0x94d049bb133111ebU;
  return value ^ value >> 31;
}

enum class What : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  reduce_scatter,
  all_gather,
  all_to_all,
  gather,
  scatter,
  ring,
  barrier
};
constexpr std::uint64_t kWhats = 10;
enum class Fold : std::uint8_t { sum, max, min };

// A drawn collective, the same on every rank of its communicator.
struct Drawn {
  What what = What::barrier;
  Fold fold = Fold::sum;
  int type = 0;
  std::size_t count = 0;
  int root = 0;
  std::uint64_t key = 0;
};

Drawn drawn(std::mt19937_64& random, int ranks) {
  Drawn one;
  one.what = static_cast<What>(random() % kWhats);
  one.fold = static_cast<Fold>(random() % 3);
  one.type = static_cast<int>(random() % 3);
  const double share = std::generate_canonical<double, 32>(random);
  one.count = static_cast<std::size_t>(std::pow(kMostElements, share)) - (random() % 8 == 0 ? 1 : 0);
  one.root = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
  one.key = random();
  return one;
}

struct Place {
  setoComm_t comm = nullptr;
  int rank = 0;
  int ranks = 1;
};

// One call: its buffers and its expected result.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual setoResult_t issue(setoStream_t stream) = 0;
  virtual void check() const = 0;
};

template <class T>
class TypedCollective final : public Collective {
 public:
  TypedCollective(const Place& place, const Drawn& drawn, setoDataType_t type) : place_(place), drawn_(drawn), type_(type) {
    const std::size_t all = drawn.count * static_cast<std::size_t>(place.ranks);
    const bool parts_in = drawn.what == What::reduce_scatter || drawn.what == What::all_to_all || drawn.what == What::scatter;
    const bool parts_out = drawn.what == What::all_gather || drawn.what == What::all_to_all || drawn.what == What::gather;
    input_.resize(parts_in ? all : drawn.count);
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value(place.rank, i);
    const bool rooted = drawn.what == What::reduce || drawn.what == What::gather;
    results_ = drawn.what == What::barrier || (rooted && place.rank != drawn.root) ? 0 : parts_out ? all : drawn.count;
    output_.assign(results_ + kGuard, kUntouched);
  }

  setoResult_t issue(setoStream_t stream) override {
    const std::size_t n = drawn_.count;
    const setoComm_t comm = place_.comm;
    switch (drawn_.what) {
      case What::all_reduce:
        return setoAllReduce(input_.data(), output_.data(), n, type_, op(), comm, stream);
      case What::reduce:
        return setoReduce(input_.data(), output_.data(), n, type_, op(), drawn_.root, comm, stream);
      case What::broadcast:
        return setoBroadcast(input_.data(), output_.data(), n, type_, drawn_.root, comm, stream);
      case What::reduce_scatter:
        return setoReduceScatter(input_.data(), output_.data(), n, type_, op(), comm, stream);
      case What::all_gather:
        return setoAllGather(input_.data(), output_.data(), n, type_, comm, stream);
      case What::all_to_all:
        return setoAlltoAll(input_.data(), output_.data(), n, type_, comm, stream);
      case What::gather:
        return setoGather(input_.data(), output_.data(), n, type_, drawn_.root, comm, stream);
      case What::scatter:
        return setoScatter(input_.data(), output_.data(), n, type_, drawn_.root, comm, stream);
      case What::ring:
        return ring(stream);
      case What::barrier:
        return setoBarrier(comm, stream);
    }
    return setoInternalError;
  }

  void check() const override {
    for (std::size_t i = 0; i < results_; ++i)
      ASSERT_EQ(output_[i], expected(i)) << "element " << i << " of " << results_ << " of collective "
                                         << static_cast<int>(drawn_.what) << ", fold " << static_cast<int>(drawn_.fold) << ", "
                                         << sizeof(T) << " bytes each, rank " << place_.rank << " of " << place_.ranks;
    for (std::size_t i = 0; i < kGuard; ++i) ASSERT_EQ(output_[results_ + i], kUntouched) << "written behind the result";
  }

 private:
  static constexpr T kUntouched = 99;

  // Small whole numbers, whose sums are exact in every type.
  [[nodiscard]] T value(int rank, std::size_t index) const {
    return static_cast<T>(mixed(drawn_.key + static_cast<std::uint64_t>(rank) * 1'000'003 + index) & 15);
  }
  [[nodiscard]] T folded(std::size_t index) const {
    T result = value(0, index);
    for (int rank = 1; rank < place_.ranks; ++rank) {
      const T other = value(rank, index);
      result = drawn_.fold == Fold::sum   ? static_cast<T>(result + other)
               : drawn_.fold == Fold::max ? std::max(result, other)
                                          : std::min(result, other);
    }
    return result;
  }
  [[nodiscard]] T expected(std::size_t index) const {
    const std::size_t n = drawn_.count, own = static_cast<std::size_t>(place_.rank) * n;
    const auto part = static_cast<int>(index / n);
    switch (drawn_.what) {
      case What::reduce_scatter:
        return folded(own + index);
      case What::broadcast:
        return value(drawn_.root, index);
      case What::all_gather:
      case What::gather:
        return value(part, index % n);
      case What::all_to_all:
        return value(part, own + index % n);
      case What::scatter:
        return value(drawn_.root, own + index);
      case What::ring:
        return value((place_.rank + place_.ranks - 1) % place_.ranks, index);
      default:
        return folded(index);
    }
  }
  [[nodiscard]] setoRedOp_t op() const {
    return drawn_.fold == Fold::sum ? setoSum : drawn_.fold == Fold::max ? setoMax : setoMin;
  }

  setoResult_t ring(setoStream_t stream) {
    const int next = (place_.rank + 1) % place_.ranks, last = (place_.rank + place_.ranks - 1) % place_.ranks;
    setoResult_t result = setoGroupStart();
    if (result == setoSuccess) result = setoSend(input_.data(), drawn_.count, type_, next, place_.comm, stream);
    if (result == setoSuccess) result = setoRecv(output_.data(), drawn_.count, type_, last, place_.comm, stream);
    const setoResult_t ended = setoGroupEnd();
    return result != setoSuccess ? result : ended;
  }

  Place place_;
  Drawn drawn_;
  setoDataType_t type_;
  std::vector<T> input_;
  std::vector<T> output_;
  std::size_t results_ = 0;
};

std::unique_ptr<Collective> collective(const Place& place, const Drawn& drawn) {
  switch (drawn.type) {
    case 0:
      return std::make_unique<TypedCollective<std::uint8_t>>(place, drawn, setoUint8);
    case 1:
      return std::make_unique<TypedCollective<std::int32_t>>(place, drawn, setoInt32);
    default:
      return std::make_unique<TypedCollective<double>>(place, drawn, setoFloat64);
  }
}

// A blocking call, a call on a stream, or a group that blocks at its end.
enum class Manner : std::uint8_t { blocking, stream, group };

bool went(setoResult_t result, const Place& place) {
  const Answer heard = answer(result);
  EXPECT_EQ(heard.code, setoSuccess) << "rank " << place.rank << ": " << heard;
  return heard.code == setoSuccess;
}

bool run_batch(const Place& place, std::vector<std::unique_ptr<Collective>>& batch, Manner manner, setoStream_t stream) {
  bool good = manner != Manner::group || went(setoGroupStart(), place);
  for (const auto& each : batch) good = good && went(each->issue(manner == Manner::stream ? stream : nullptr), place);
  if (manner == Manner::group) good = went(setoGroupEnd(), place) && good;
  if (manner == Manner::stream && good) {
    std::uint64_t position = 0;
    good = went(setoStreamPosition(stream, &position), place) && went(setoStreamWait(stream, position, kWaitMs), place);
  }
  return good;
}

// The work of one thread with its communicator.
void use(const Place& place, std::uint64_t seed) {
  setoStream_t stream = nullptr;
  bool good = went(setoStreamCreate(&stream), place);
  std::mt19937_64 random(seed);
  for (int batch = 0; good && batch < kBatches; ++batch) {
    const auto manner = static_cast<Manner>(random() % 3);
    std::vector<std::unique_ptr<Collective>> calls;
    for (std::uint64_t left = 1 + random() % 4; left > 0; --left) calls.push_back(collective(place, drawn(random, place.ranks)));
    good = run_batch(place, calls, manner, stream);
    for (const auto& each : calls)
      if (good && !::testing::Test::HasFatalFailure()) each->check();
    good = good && !::testing::Test::HasFatalFailure();
  }
  if (!good) setoCommAbort(place.comm);  // otherwise the others would wait for this thread
  EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  if (good) {
    EXPECT_EQ(setoCommDestroy(place.comm), setoSuccess);
  }
}

// All ranks, all ranks in reverse order, all ranks but the last, and two more of all ranks.
std::vector<Place> make_communicators(const Seat& seat, setoContext_t context) {
  setoConfig_t config = config_of_test();
  config.context = context;
  std::vector<Place> places(5);
  places[0] = {seat.join(config), seat.rank, seat.ranks};
  if (places[0].comm == nullptr) return {};
  for (int i = 1; i < 5; ++i) {
    const bool part = i == 2, apart = part && seat.rank == seat.ranks - 1;
    setoComm_t made = nullptr;
    const Answer heard = answer(setoCommSplit(places[0].comm, apart ? 1 : 0, i == 1 ? -seat.rank : seat.rank, &made, nullptr));
    EXPECT_EQ(heard.code, setoSuccess) << heard;
    if (made == nullptr) return {};
    places[static_cast<std::size_t>(i)].comm = made;
    EXPECT_EQ(setoCommUserRank(made, &places[static_cast<std::size_t>(i)].rank), setoSuccess);
    EXPECT_EQ(setoCommCount(made, &places[static_cast<std::size_t>(i)].ranks), setoSuccess);
  }
  EXPECT_EQ(places[1].rank, seat.ranks - 1 - seat.rank);
  return places;
}

class SharedContext : public ::testing::TestWithParam<Kind> {};

TEST_P(SharedContext, ServesCommunicatorsOfSeveralThreadsAtOnce) {
  const std::uint64_t seed = chosen_seed();
  run_ranks(GetParam(), kRanks, [seed](const Seat& seat) {
    setoContext_t context = nullptr;
    ASSERT_EQ(setoContextCreate(&context, nullptr), setoSuccess);
    const std::vector<Place> places = make_communicators(seat, context);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < places.size(); ++i) threads.emplace_back([&places, seed, i] { use(places[i], seed * 100 + i); });
    for (std::thread& thread : threads) thread.join();
    const Answer ended = answer(setoContextDestroy(context));
    EXPECT_EQ(ended.code, setoSuccess) << ended;
  });
}

// Communicators are made and destroyed while others of the context are in use.
TEST_P(SharedContext, ServesCommunicatorsThatAreMadeAndDestroyed) {
  const std::uint64_t seed = chosen_seed();
  run_ranks(GetParam(), kRanks, [seed](const Seat& seat) {
    setoContext_t context = nullptr;
    ASSERT_EQ(setoContextCreate(&context, nullptr), setoSuccess);
    setoConfig_t config = config_of_test();
    config.context = context;
    const setoComm_t parent = seat.join(config);
    ASSERT_NE(parent, nullptr);
    setoComm_t busy = nullptr;
    ASSERT_EQ(setoCommSplit(parent, 0, seat.rank, &busy, nullptr), setoSuccess);
    std::thread user([&] { use({busy, seat.rank, seat.ranks}, seed); });
    for (std::uint64_t round = 0; round < 10; ++round) {
      setoComm_t child = nullptr;
      const Answer heard = answer(setoCommSplit(parent, 0, seat.rank, &child, nullptr));
      EXPECT_EQ(heard.code, setoSuccess) << heard;
      if (child == nullptr) break;
      std::mt19937_64 random(seed + round);
      const Place place{child, seat.rank, seat.ranks};
      for (int i = 0; i < 4; ++i) {
        const auto one = collective(place, drawn(random, seat.ranks));
        if (went(one->issue(nullptr), place)) one->check();
      }
      EXPECT_EQ(setoCommDestroy(child), setoSuccess);
    }
    user.join();
    EXPECT_EQ(setoCommDestroy(parent), setoSuccess);
    EXPECT_EQ(setoContextDestroy(context), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, SharedContext, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace seto::testing
