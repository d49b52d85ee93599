// Measures what it costs to fill the same slots again and again, against slots that move on through more memory.
//
//   slot_ring_probe [rounds]          rounds of all rows, 15 by default
//
// Two processes, each on a core of its own, exchange messages as a small all_reduce does: each copies its message into a slot,
// stores a flag, waits for the flag of the other one, and adds the other's slot to its own numbers. The slots of successive
// messages lie one behind another in a ring. A row is a size of messages and a size of the ring; its columns are ways to fill a
// slot:
//   memcpy    as the C library does it
//   vectors   a loop of vector loads and stores (AVX2)
//   streamed  past the cache
// Microseconds of one exchange, the lower quartile of all rounds, of the slower process. The first line is the time of a flag
// exchange, which says whether the cores share a cache (near) or not (far). Exit status: 1 wrong data, 2 a bad argument.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/limit/kernels.h"
#include "bench/limit/processes.h"

namespace seto::limit {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMostBytes = 256 * kKiB;
constexpr std::size_t kLargestRing = 8192 * kKiB;
constexpr std::size_t kBytesOfARow = 50 << 20;  // about 10 ms
constexpr std::size_t kWays = 3;
constexpr std::size_t kVectors = 1;

struct Row {
  std::size_t bytes;
  std::size_t ring;
};

struct Shared {
  BarrierLines barrier;
  Counter flags[2];
  double seconds[2];
  alignas(4096) std::byte slots[2][kLargestRing];
};

#if defined(__x86_64__)
__attribute__((target("avx2"))) void copy_by_avx2(float* to, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kGranule) {
    const __m256 low = _mm256_load_ps(from + i);
    const __m256 high = _mm256_load_ps(from + i + kGranule / 2);
    _mm256_store_ps(to + i, low);
    _mm256_store_ps(to + i + kGranule / 2, high);
  }
}
bool has_vectors() { return __builtin_cpu_supports("avx2"); }
#else
void copy_by_avx2(float* to, const float* from, std::size_t count) { std::memcpy(to, from, count * sizeof(float)); }
bool has_vectors() { return false; }
#endif

class Rank final {
 public:
  Rank(Shared& shared, int rank)
      : shared_(shared), rank_(rank), barrier_(&shared.barrier, rank, 2), sent_(allocate(1.0F)), sum_(allocate(0.0F)) {}

  double seconds_of_a_flag() {
    constexpr int kFlags = 20'000;
    barrier_.arrive_and_wait();
    const auto start = Clock::now();
    for (int i = 0; i < kFlags; ++i) exchange_flags();
    return seconds_since(start) / kFlags;
  }

  // One exchange, as the slower of the two processes sees it.
  double seconds_of(const Row& row, std::size_t way) {
    const int calls = static_cast<int>(kBytesOfARow / (row.bytes + 8 * kKiB));
    place_ = 0;
    barrier_.arrive_and_wait();
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) exchange(row, way);
    shared_.seconds[rank_] = seconds_since(start) / calls;
    barrier_.arrive_and_wait();
    const double slower = std::max(shared_.seconds[0], shared_.seconds[1]);
    barrier_.arrive_and_wait();
    return slower;
  }

  // After some more exchanges, each with other numbers.
  [[nodiscard]] bool is_right(const Row& row, std::size_t way) {
    bool right = true;
    for (int call = 0; call < 3; ++call) {
      const auto sent = static_cast<float>(++fillings_ % 1000);
      std::fill(sent_, sent_ + row.bytes / sizeof(float), sent);
      barrier_.arrive_and_wait();
      exchange(row, way);
      right = right && std::all_of(sum_, sum_ + row.bytes / sizeof(float), [&](float one) { return one == 2 * sent; });
    }
    barrier_.arrive_and_wait();
    return right;
  }

 private:
  static float* allocate(float value) {
    auto* const numbers = static_cast<float*>(std::aligned_alloc(4096, kMostBytes));
    std::fill(numbers, numbers + kMostBytes / sizeof(float), value);
    return numbers;
  }

  void exchange_flags() {
    ++flag_;
    shared_.flags[rank_].value.store(flag_, std::memory_order_release);
    waiter_.wait_for(shared_.flags[1 - rank_].value, flag_);
  }

  void exchange(const Row& row, std::size_t way) {
    if (place_ + row.bytes > row.ring) place_ = 0;
    const std::size_t count = row.bytes / sizeof(float);
    auto* const own = reinterpret_cast<float*>(shared_.slots[rank_] + place_);
    const auto* const theirs = reinterpret_cast<const float*>(shared_.slots[1 - rank_] + place_);
    place_ += row.bytes;
    if (way == 0) std::memcpy(own, sent_, row.bytes);
    if (way == kVectors) copy_by_avx2(own, sent_, count);
    if (way == 2) kernels_.copy_streamed(own, sent_, count);
    exchange_flags();
    for (std::size_t i = 0; i < count; ++i) sum_[i] = sent_[i] + theirs[i];
  }

  Shared& shared_;
  int rank_;
  Barrier barrier_;
  Waiter waiter_{2};
  const Kernels& kernels_ = best_kernels();
  float* sent_;
  float* sum_;
  std::uint64_t flag_ = 0;
  int fillings_ = 0;
  std::size_t place_ = 0;
};

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const std::size_t kilobytes : {4U, 8U, 16U, 32U, 64U, 128U, 256U})
    for (const std::size_t ring : {2 * kilobytes, std::size_t{1024}, std::size_t{2048}, std::size_t{4096}, std::size_t{8192}})
      all.push_back({kilobytes * kKiB, ring * kKiB});
  return all;
}

double lower_quartile(std::vector<double>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bool measure(Shared& shared, int rank, int rounds) {
  Rank mine(shared, rank);
  const std::vector<Row> all = rows();
  std::vector<std::vector<double>> times(all.size() * kWays);
  std::vector<double> flags;
  bool right = true;
  for (int round = 0; round < rounds; ++round) {
    flags.push_back(mine.seconds_of_a_flag());
    for (std::size_t row = 0; row < all.size(); ++row)
      for (std::size_t way = 0; way < kWays; ++way) {
        if (way == kVectors && !has_vectors()) continue;
        times[row * kWays + way].push_back(mine.seconds_of(all[row], way));
        right = right && mine.is_right(all[row], way);
      }
  }
  if (rank != 0) return right;
  std::printf("flag exchange: %.0f ns\n%10s %10s %9s %9s %9s\n", lower_quartile(flags) * 1e9, "bytes", "ring", "memcpy",
              "vectors", "streamed");
  for (std::size_t row = 0; row < all.size(); ++row) {
    std::printf("%10zu %10zu", all[row].bytes, all[row].ring);
    for (std::size_t way = 0; way < kWays; ++way) {
      std::vector<double>& of_way = times[row * kWays + way];
      if (of_way.empty())
        std::printf(" %9s", "-");
      else
        std::printf(" %9.2f", lower_quartile(of_way) * 1e6);
    }
    std::printf("\n");
  }
  return right;
}

}  // namespace
}  // namespace seto::limit

int main(int count, char** arguments) {
  using namespace seto::limit;
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 15;
  if (rounds < 1 || count > 2) {
    std::fprintf(stderr, "usage: slot_ring_probe [rounds]\n");
    return 2;
  }
  auto& shared = *static_cast<Shared*>(map_shared(sizeof(Shared)));
  const int rank = fork_ranks(2);
  stay_on_core(rank);
  const bool right = join_ranks(rank, measure(shared, rank, rounds));
  if (!right) std::fprintf(stderr, "wrong data\n");
  return right ? 0 : 1;
}
