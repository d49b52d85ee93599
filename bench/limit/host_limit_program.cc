// The limit of this machine for an fp32 all-reduce between processes: one hand-written schedule and nothing general.
//
//   host_limit_program [--ranks N] [--sizes BYTES,...] [--budget SECONDS] [--timing each|loop] [--json]
//
// Direct reduce-scatter and all-gather through shared-memory slots, in slices and in three stages:
//   send    this rank's slice of each peer's part goes into the slot (rank -> peer)
//   reduce  its part and the slots of all peers are added in one pass; the sum goes to its output and to its result slot
//   fetch   the owners' result slots are copied to its output
// Stages run skewed by one slice, so that a rank has other work while a peer is late. For each size the best of all settings
// (slice, depth, output cached or streamed) is reported twice: with slots left in the writer's cache and with slots written past
// it.
// --timing each: median of single calls of rank 0 after a barrier. --timing loop: mean of back-to-back calls, like the timing of
// the benchmark programs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/limit/kernels.h"
#include "bench/limit/processes.h"

namespace seto::limit {
namespace {

constexpr std::size_t kMaxSlice = 256 << 10;
constexpr std::size_t kMaxDepth = 4;

enum class Timing { each, loop };

struct Options {
  int ranks = 2;
  std::vector<std::size_t> sizes = {32 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20};
  double budget = 0.5;  // seconds for each size and each way to fill slots, including the search
  Timing timing = Timing::each;
  bool json = false;
};

struct Setting {
  std::size_t slice = 0;  // bytes
  std::size_t depth = 0;
  Stores stores;
  int spins = kSpins;
};

struct Shared {
  BarrierLines barrier;
  Counter sent[kMaxRanks][kMaxRanks];     // [from][to]: slices written to the slot
  Counter reduced[kMaxRanks];             // slices whose sum is in the result slot and whose inputs are free again
  Counter fetched[kMaxRanks][kMaxRanks];  // [by][owner]: result slices copied out
  std::atomic<double> figure[kMaxRanks];
};

// Slots are padded apart by an odd number of lines: with power-of-two strides, equal offsets would map to the same cache sets.
class Slots final {
 public:
  explicit Slots(int ranks)
      : ranks_(static_cast<std::size_t>(ranks)),
        memory_(static_cast<char*>(map_shared(ranks_ * ranks_ * kMaxDepth * (kMaxSlice + kPadding)))) {}

  float* at(int from, int to, std::uint64_t sequence, const Setting& setting) const {
    const std::size_t ring = static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
    const std::size_t place = ring * setting.depth + static_cast<std::size_t>(sequence % setting.depth);
    return reinterpret_cast<float*>(memory_ + place * (setting.slice + kPadding));
  }

 private:
  static constexpr std::size_t kPadding = 3 * 64;
  std::size_t ranks_;
  char* memory_;
};

class AllReduce final {
 public:
  AllReduce(Shared* shared, const Slots& slots, int rank, int ranks)
      : shared_(shared), slots_(slots), kernels_(best_kernels()), waiter_(ranks), rank_(rank), ranks_(ranks) {}

  // To be called only between two barriers: all ranks must have fetched every slot of the previous setting.
  void use(const Setting& setting) {
    setting_ = setting;
    waiter_.spin_before_yield(setting.spins);
    origin_ = done_;
  }

  void run(const float* input, float* output, std::size_t count) {
    part_ = count / static_cast<std::size_t>(ranks_);
    input_ = input;
    output_ = output;
    const std::size_t per_slice = setting_.slice / sizeof(float);
    const std::size_t slices = (part_ + per_slice - 1) / per_slice;
    for (std::size_t i = 0; i < slices + 2; ++i) {
      if (i < slices) send(i);
      if (i >= 1 && i - 1 < slices) reduce(i - 1);
      if (i >= 2) fetch(i - 2);
    }
    done_ += slices;
  }

 private:
  std::size_t start(int owner, std::size_t slice) const {
    return static_cast<std::size_t>(owner) * part_ + slice * (setting_.slice / sizeof(float));
  }
  std::size_t length(std::size_t slice) const {
    const std::size_t per_slice = setting_.slice / sizeof(float);
    return std::min(per_slice, part_ - slice * per_slice);
  }
  // A slot may be filled again once its previous content, `depth` slices ago, has been read.
  void wait_until_free(const Counter& readers, std::uint64_t sequence) const {
    if (sequence >= origin_ + setting_.depth) waiter_.wait_for(readers.value, sequence - setting_.depth + 1);
  }
  void copy(float* to, const float* from, std::size_t count, Store store) const {
    if (store == Store::streamed) {
      kernels_.copy_streamed(to, from, count);
    } else {
      std::memcpy(to, from, count * sizeof(float));
    }
  }

  void send(std::size_t slice) const {
    const std::uint64_t sequence = done_ + slice;
    for (int distance = 1; distance < ranks_; ++distance) {
      const int peer = (rank_ + distance) % ranks_;
      wait_until_free(shared_->reduced[peer], sequence);
      copy(slots_.at(rank_, peer, sequence, setting_), input_ + start(peer, slice), length(slice), setting_.stores.slot);
      shared_->sent[rank_][peer].value.store(sequence + 1, std::memory_order_release);
    }
  }

  void reduce(std::size_t slice) const {
    const std::uint64_t sequence = done_ + slice;
    ReduceJob job{output_ + start(rank_, slice), slots_.at(rank_, rank_, sequence, setting_), {}, ranks_, length(slice)};
    for (int distance = 0; distance < ranks_; ++distance) {
      const int peer = (rank_ + distance) % ranks_;
      if (peer == rank_) {
        job.inputs[peer] = input_ + start(rank_, slice);
        continue;
      }
      waiter_.wait_for(shared_->sent[peer][rank_].value, sequence + 1);
      wait_until_free(shared_->fetched[peer][rank_], sequence);
      job.inputs[peer] = slots_.at(peer, rank_, sequence, setting_);
    }
    kernels_.reduce[static_cast<int>(setting_.stores.slot)][static_cast<int>(setting_.stores.output)](job);
    shared_->reduced[rank_].value.store(sequence + 1, std::memory_order_release);
  }

  void fetch(std::size_t slice) const {
    const std::uint64_t sequence = done_ + slice;
    for (int distance = 1; distance < ranks_; ++distance) {
      const int owner = (rank_ + distance) % ranks_;
      waiter_.wait_for(shared_->reduced[owner].value, sequence + 1);
      copy(output_ + start(owner, slice), slots_.at(owner, owner, sequence, setting_), length(slice), setting_.stores.output);
      shared_->fetched[rank_][owner].value.store(sequence + 1, std::memory_order_release);
    }
  }

  Shared* shared_;
  const Slots& slots_;
  const Kernels& kernels_;
  Waiter waiter_;
  int rank_;
  int ranks_;
  Setting setting_;
  std::uint64_t done_ = 0;
  std::uint64_t origin_ = 0;
  std::size_t part_ = 0;
  const float* input_ = nullptr;
  float* output_ = nullptr;
};

struct Outcome {
  Setting setting;
  double seconds = 1e30;
};

// One rank's side of the search. All ranks make the same decisions, because they agree on every figure.
class Search final {
 public:
  Search(const Options& options, Shared* shared, const Slots& slots, int rank)
      : options_(options),
        shared_(shared),
        rank_(rank),
        barrier_(&shared->barrier, rank, options.ranks),
        all_reduce_(shared, slots, rank, options.ranks) {
    const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
    input_ = allocate(largest, 1.0F + static_cast<float>(rank));
    output_ = allocate(largest, 0.0F);
  }
  ~Search() {
    std::free(input_);
    std::free(output_);
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  Outcome best(std::size_t size, Store slot) {
    std::vector<Outcome> tried = candidates(slot);
    // A third of the time finds the promising settings; the rest measures those thoroughly.
    const double first_look = options_.budget / 3 / static_cast<double>(tried.size());
    for (Outcome& outcome : tried) outcome.seconds = time(size, outcome.setting, first_look);
    std::sort(tried.begin(), tried.end(), faster);
    constexpr std::size_t kFinalists = 4;
    tried.resize(kFinalists);
    for (Outcome& outcome : tried) outcome.seconds = time(size, outcome.setting, options_.budget * 2 / 3 / kFinalists);
    return *std::min_element(tried.begin(), tried.end(), faster);
  }

  // Every element is the same, so the first, the last and one in each part show whether the sum is right.
  bool right(std::size_t size) {
    const std::size_t count = count_of(size);
    std::fill(output_, output_ + count, 0.0F);
    barrier_.arrive_and_wait();
    all_reduce_.run(input_, output_, count);
    barrier_.arrive_and_wait();
    const float expected = static_cast<float>(options_.ranks * (options_.ranks + 1)) / 2;
    return std::all_of(output_, output_ + count, [expected](float value) { return value == expected; });
  }

 private:
  static bool faster(const Outcome& a, const Outcome& b) { return a.seconds < b.seconds; }

  std::vector<Outcome> candidates(Store slot) const {
    std::vector<Outcome> result;
    // If ranks share cores, yielding at once is faster for short waits (1.7 times at 32 KiB), and spinning first for long ones.
    std::vector<int> spins = {kSpins};
    if (oversubscribed(options_.ranks)) spins.push_back(0);
    for (const std::size_t slice : {std::size_t{8} << 10, std::size_t{32} << 10, std::size_t{128} << 10, kMaxSlice}) {
      for (const std::size_t depth : {kMaxDepth / 2, kMaxDepth}) {
        for (const Store output : {Store::cached, Store::streamed}) {
          for (const int spin : spins) result.push_back({{slice, depth, {slot, output}, spin}, 0});
        }
      }
    }
    return result;
  }

  static float* allocate(std::size_t size, float value) {
    auto* memory = static_cast<float*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096));
    if (memory == nullptr) {
      std::perror("aligned_alloc");
      _exit(2);
    }
    std::fill(memory, memory + size / sizeof(float), value);
    return memory;
  }

  std::size_t count_of(std::size_t size) const {
    const std::size_t granule = static_cast<std::size_t>(options_.ranks) * kGranule;
    return std::max(size / sizeof(float) / granule, std::size_t{1}) * granule;
  }

  double slowest(double mine) {
    shared_->figure[rank_].store(mine, std::memory_order_release);
    barrier_.arrive_and_wait();
    double result = 0;
    for (int peer = 0; peer < options_.ranks; ++peer)
      result = std::max(result, shared_->figure[peer].load(std::memory_order_acquire));
    barrier_.arrive_and_wait();
    return result;
  }

  double time(std::size_t size, const Setting& setting, double budget) {
    const std::size_t count = count_of(size);
    barrier_.arrive_and_wait();
    all_reduce_.use(setting);
    barrier_.arrive_and_wait();
    const auto start = Clock::now();
    all_reduce_.run(input_, output_, count);
    const double once = slowest(seconds_since(start));
    if (once >= budget) return once;  // one call is enough for a first look at a large message
    const int calls = static_cast<int>(std::clamp(budget / once, 2.0, 20'000.0));
    if (options_.timing == Timing::loop) return slowest(mean_of_loop(count, calls));
    const double median = median_of_each(count, calls);
    return slowest(rank_ == 0 ? median : 0);  // all ranks learn rank 0's figure
  }

  double mean_of_loop(std::size_t count, int calls) {
    barrier_.arrive_and_wait();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) all_reduce_.run(input_, output_, count);
    return seconds_since(start) / calls;
  }

  double median_of_each(std::size_t count, int calls) {
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) {
      barrier_.arrive_and_wait();
      const auto start = Clock::now();
      all_reduce_.run(input_, output_, count);
      times.push_back(seconds_since(start));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  const Options& options_;
  Shared* shared_;
  int rank_;
  Barrier barrier_;
  AllReduce all_reduce_;
  float* input_ = nullptr;
  float* output_ = nullptr;
};

struct Line {
  const Options& options;
  std::size_t size;
  Store slot;
  Outcome outcome;
  bool right;
};

void print(const Line& line) {
  const Setting& setting = line.outcome.setting;
  const char* slots = line.slot == Store::streamed ? "streamed" : "cached";
  const char* output = setting.stores.output == Store::streamed ? "streamed" : "cached";
  const double bandwidth = static_cast<double>(line.size) / line.outcome.seconds / 1e9;
  if (line.options.json) {
    std::printf(
        "{\"collective\": \"all_reduce\", \"ranks\": %d, \"size\": %zu, \"time_us\": %.4f, \"slots\": \"%s\", \"output\": "
        "\"%s\", "
        "\"slice\": %zu, \"depth\": %zu, \"instructions\": \"%s\", \"wrong\": %d}\n",
        line.options.ranks, line.size, line.outcome.seconds * 1e6, slots, output, setting.slice, setting.depth,
        best_kernels().name, line.right ? 0 : 1);
  } else {
    std::printf("%2d ranks %9zu KiB  %-8s slots %10.1f us  algbw %6.2f GB/s  slice %3zu KiB x%zu  output %-8s %s\n",
                line.options.ranks, line.size >> 10, slots, line.outcome.seconds * 1e6, bandwidth, setting.slice >> 10,
                setting.depth, output, line.right ? "right" : "WRONG");
  }
  std::fflush(stdout);
}

int run(const Options& options) {
  auto* shared = static_cast<Shared*>(map_shared(sizeof(Shared)));
  const Slots slots(options.ranks);
  const int rank = fork_ranks(options.ranks);
  bool all_right = true;
  {
    Search search(options, shared, slots, rank);
    for (const std::size_t size : options.sizes) {
      for (const Store slot : {Store::cached, Store::streamed}) {
        const Outcome outcome = search.best(size, slot);
        const bool right = search.right(size);
        all_right = all_right && right;
        if (rank == 0) print({options, size, slot, outcome, right});
      }
    }
  }
  return join_ranks(rank, all_right) ? 0 : 1;
}

std::vector<std::size_t> parse_sizes(const char* text) {
  std::vector<std::size_t> sizes;
  for (char* next = nullptr; *text != '\0'; text = *next == ',' ? next + 1 : next) {
    const unsigned long long size = std::strtoull(text, &next, 10);
    if (next == text || size == 0 || (*next != ',' && *next != '\0')) return {};
    sizes.push_back(static_cast<std::size_t>(size));
  }
  return sizes;
}

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--json") {
      options->json = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    if (name == "--ranks") {
      options->ranks = std::atoi(argv[i]);
    } else if (name == "--sizes") {
      options->sizes = parse_sizes(argv[i]);
    } else if (name == "--budget") {
      options->budget = std::atof(argv[i]);
    } else if (name == "--timing" && (value == "each" || value == "loop")) {
      options->timing = value == "loop" ? Timing::loop : Timing::each;
    } else {
      return false;
    }
  }
  return options->ranks >= 2 && options->ranks <= kMaxRanks && !options->sizes.empty() && options->budget > 0;
}

}  // namespace
}  // namespace seto::limit

int main(int argc, char** argv) {
  seto::limit::Options options;
  if (!seto::limit::parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: %s [--ranks 2..%d] [--sizes BYTES,...] [--budget SECONDS] [--timing each|loop] [--json]\n",
                 argv[0], seto::limit::kMaxRanks);
    return 2;
  }
  return seto::limit::run(options);
}
