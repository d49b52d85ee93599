#include "bench/common/rank_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/common/codecs.h"
#include "bench/common/verify.h"

namespace seto::bench {
namespace {

// As float 0.0115, as fp16 1.06: neither denormal nor zero (some processors drop stores of zeros over zeros).
constexpr int kIdleByte = 0x3c;
// A byte that no collective should write. It is stored behind the result, and in the result before the call.
constexpr int kPoisonByte = 0xa5;
constexpr std::size_t kGuardSize = 64;
constexpr std::size_t kPageSize = 4096;
constexpr std::size_t kCompareSize = 64 << 10;

double combine(Average average, std::span<const double> values) {
  switch (average) {
    case Average::rank_0:
      return values[0];
    case Average::min:
      return *std::min_element(values.begin(), values.end());
    case Average::max:
      return *std::max_element(values.begin(), values.end());
    case Average::mean:
      break;
  }
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

struct RankRun::Prepared {
  RowPlan row;
  Call call;
  Pattern pattern;
  std::size_t element_size;
  std::size_t row_size;    // bytes from one iteration's buffers to the next one's
  std::size_t places = 1;  // buffers that iterations use in turn
  Where where;
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  bool encoded = false;  // it used a codec, or that is unknown
  double bound = 0;      // of a check: the largest error of a sum; 0: exact
  double largest = 0;    // of a check: the magnitude to which the bound belongs
};

double RankRun::seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t largest_buffer(const Program& program, const Options& options) {
  std::size_t largest = 0;
  for (const setoDataType_t type : options.types) {
    const std::size_t element_size = size_of(type);
    const Layout layout = program.layout(options.sizes.max / element_size, element_size, options.ranks());
    largest = std::max(largest, std::max(layout.send_count, layout.receive_count) * element_size);
  }
  return largest;
}

RankRun::RankRun(const Program& program, const Options& options, Job& job, int rank)
    : program_(program), options_(options), job_(job), rank_(rank) {}

RankRun::~RankRun() {
  // The communicator is aborted, not destroyed: the job has failed, and destroy would wait for peers that may be gone.
  if (comm_ != nullptr) (void)setoCommAbort(comm_);
}

bool RankRun::ok(setoResult_t result, const char* what) {
  if (result == setoSuccess) return true;
  std::fprintf(stderr, "%s: rank %d: %s: %s: %s\n", program_.name, rank_, what, setoGetErrorString(result),
               setoGetLastError(comm_));
  job_.fail();
  return false;
}

bool RankRun::ok(const Status& status, const char* what) {
  if (status.ok()) return true;
  std::fprintf(stderr, "%s: rank %d: %s: %s\n", program_.name, rank_, what, std::string(status.text()).c_str());
  job_.fail();
  return false;
}

bool RankRun::open_gpu() {
  Result<std::unique_ptr<Gpu>> opened = Gpu::open(rank_);
  if (!ok(opened.status(), "--memory device")) return false;
  gpu_ = std::move(opened).value();
  stream_ = gpu_->stream();
  return true;
}

template <class Byte>
Byte* RankRun::on_host(Byte* memory) const {
  if (gpu_ == nullptr) return memory;
  auto& self = const_cast<RankRun&>(*this);
  if (memory >= receive_ && memory < receive_ + capacity_) return self.receive_copy_.data() + (memory - receive_);
  return self.send_copy_.data() + (memory - send_);
}

bool RankRun::open() {
  if (options_.on_device && !open_gpu()) return false;
  if (rank_ == 0 && !job_.launched() && !ok(setoGetUniqueId(&job_.id()), "unique id")) return false;
  if (!job_.barrier()) return false;
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.commName = program_.name;
  config.memory = options_.on_device ? setoMemoryDevice : setoMemoryHost;
  if (!options_.algorithm.empty()) config.algorithm = options_.algorithm.c_str();
  if (options_.deterministic) config.deterministic = setoOn;
  if (options_.timeout_s > 0) config.operationTimeoutMs = static_cast<std::uint32_t>(options_.timeout_s) * 1000;
  const setoResult_t made = job_.launched() ? setoCommInitEnvironment(&comm_, &config)
                                            : setoCommInitRankConfig(&comm_, job_.ranks(), job_.id(), rank_, &config);
  if (!ok(made, "init")) return false;
  const bool queued = options_.issue == Issue::queued || options_.issue == Issue::queued_one_by_one;
  if (queued && gpu_ == nullptr && !ok(setoStreamCreate(&stream_), "stream create")) return false;
  return allocate() && job_.barrier();
}

bool RankRun::allocate() {
  capacity_ = (largest_buffer(program_, options_) + kGuardSize + kPageSize - 1) / kPageSize * kPageSize;
  return allocate_one(send_, send_handle_) && allocate_one(receive_, receive_handle_);
}

bool RankRun::allocate_one(std::byte*& buffer, void*& handle) {
  if (gpu_ != nullptr) {
    const Result<std::byte*> allocated = gpu_->allocate(capacity_);
    if (!ok(allocated.status(), "memory")) return false;
    buffer = allocated.value();
    if (options_.registered && !ok(setoCommRegister(comm_, buffer, capacity_, &handle), "register")) return false;
    return idle(buffer, capacity_);
  }
  void* memory = nullptr;
  if (options_.registered) {
    if (!ok(setoMemAlloc(&memory, capacity_), "memory alloc")) return false;
    if (!ok(setoCommRegister(comm_, memory, capacity_, &handle), "register")) return false;
  } else {
    memory = std::aligned_alloc(kPageSize, capacity_);
    if (memory == nullptr) {
      std::fprintf(stderr, "%s: rank %d: no memory for a buffer of %zu bytes; use a smaller -e\n", program_.name, rank_,
                   capacity_);
      job_.fail();
      return false;
    }
  }
  std::memset(memory, kIdleByte, capacity_);
  buffer = static_cast<std::byte*>(memory);
  return true;
}

bool RankRun::idle(std::byte* buffer, std::size_t size) {
  if (gpu_ != nullptr) return ok(gpu_->fill(buffer, kIdleByte, size), "fill");
  std::memset(buffer, kIdleByte, size);
  return true;
}

bool RankRun::close() {
  if (!job_.barrier()) return false;
  if (gpu_ != nullptr && !ok(gpu_->drop_recording(), "graph")) return false;
  for (auto [buffer, handle] : {std::pair{send_, send_handle_}, std::pair{receive_, receive_handle_}}) {
    if (options_.registered && !ok(setoCommDeregister(comm_, handle), "deregister")) return false;
    if (gpu_ != nullptr) {
      if (!ok(gpu_->free(buffer), "memory free")) return false;
    } else if (!options_.registered) {
      std::free(buffer);
    } else if (!ok(setoMemFree(buffer), "memory free")) {
      return false;
    }
  }
  if (stream_ != nullptr && gpu_ == nullptr && !ok(setoStreamDestroy(stream_), "stream destroy")) return false;
  if (!ok(setoCommDestroy(comm_), "destroy")) return false;
  comm_ = nullptr;
  return true;
}

bool RankRun::prepare(const RowPlan& row, Where where, Prepared& prepared) {
  const std::size_t element_size = size_of(row.type);
  const int ranks = job_.ranks();
  const Layout layout = program_.layout(row.size / element_size, element_size, ranks);
  const auto index = static_cast<std::size_t>(rank_);
  prepared = {.row = row,
              .call = {.shape = {layout, rank_, ranks, row.root},
                       .send = send_,
                       .receive = receive_,
                       .type = row.type,
                       .op = static_cast<setoRedOp_t>(row.op),
                       .comm = comm_,
                       .stream = stream_},
              .pattern = {row.type, row.op, ranks, 0},
              .element_size = element_size,
              .row_size = std::max(layout.send_count, layout.receive_count) * element_size,
              .where = where};
  if (where == Where::in_place) {
    prepared.call.send = receive_ + index * layout.send_stride * element_size;
    prepared.call.receive = receive_ + index * layout.receive_stride * element_size;
  }
  if (options_.coded() && !options_.codec_of_environment) {
    if (!ok(setoCodecId(row.codec.c_str(), &prepared.config.codec), "codec")) return false;
    prepared.call.config = &prepared.config;
  }
  if (prepared.row_size > 0 && !options_.one_place)
    prepared.places = std::max<std::size_t>(1, (capacity_ - kGuardSize) / prepared.row_size);
  if (program_.reduces == Reduces::no || row.op != Op::mul_sum) return true;
  std::uint64_t scalar = 0;
  write_scalar(prepared.pattern, rank_, &scalar);
  return ok(setoRedOpCreatePreMulSum(&prepared.call.op, &scalar, row.type, setoScalarHostImmediate, comm_), "create mulsum");
}

Call RankRun::moved(const Prepared& prepared, std::size_t place) {
  const std::size_t shift = place * prepared.row_size;
  Call call = prepared.call;
  call.send = static_cast<const std::byte*>(call.send) + shift;
  call.receive = static_cast<std::byte*>(call.receive) + shift;
  return call;
}

// Successive calls use successive parts of the buffers, as in nccl-tests, so that the data that one call leaves in a cache does
// not help the next. Other benchmarks use one part.
bool RankRun::issue(const Prepared& prepared, std::size_t iteration) {
  const auto aggregated = static_cast<std::size_t>(options_.aggregated);
  if (aggregated > 1 && !ok(setoGroupStart(), "group start")) return false;
  for (std::size_t index = 0; index < aggregated; ++index) {
    const setoResult_t result = prepared.places == 1
                                    ? program_.call(prepared.call)  // computing the position would take a tenth of a small call
                                    : program_.call(moved(prepared, (iteration * aggregated + index) % prepared.places));
    if (result != setoSuccess) return ok(result, "call");
  }
  return aggregated == 1 || ok(setoGroupEnd(), "group end");
}

bool RankRun::wait_stream() {
  if (gpu_ != nullptr) return ok(gpu_->synchronize(), "stream synchronize");
  std::uint64_t position = 0;
  return ok(setoStreamPosition(stream_, &position), "stream position") && ok(setoStreamWait(stream_, position, 0), "stream wait");
}

bool RankRun::iterate(const Prepared& prepared, int iterations, Elapsed& elapsed) {
  const Issue issue_mode = options_.issue;
  const bool each = elapsed.iterations != nullptr || issue_mode == Issue::barrier_after_each ||
                    (issue_mode == Issue::queued_one_by_one && options_.report_cpu_time);
  double sum = 0;
  const double start = seconds_now();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const double begin = each ? seconds_now() : 0;
    if (!issue(prepared, static_cast<std::size_t>(iteration))) return false;
    const double issued = each ? seconds_now() : 0;
    const bool waits = issue_mode == Issue::queued_one_by_one || (gpu_ != nullptr && each);
    if (waits && !wait_stream()) return false;
    if (each) {
      const double end = waits && !options_.report_cpu_time ? seconds_now() : issued;
      if (elapsed.iterations != nullptr) elapsed.iterations[iteration] = end - begin;
      sum += end - begin;
    }
    if (issue_mode == Issue::barrier_after_each && !job_.barrier()) return false;
  }
  double end = seconds_now();
  if (issue_mode == Issue::queued || (gpu_ != nullptr && !each)) {
    if (!wait_stream()) return false;
    if (!options_.report_cpu_time) end = seconds_now();
  }
  elapsed.seconds = each && issue_mode != Issue::queued ? sum : end - start;
  return true;
}

bool RankRun::exchange(double mine, std::span<double> all) {
  job_.value(rank_) = mine;
  if (!job_.barrier()) return false;
  for (int rank = 0; rank < job_.ranks(); ++rank) all[static_cast<std::size_t>(rank)] = job_.value(rank);
  return job_.barrier();
}

IterationStatistics RankRun::slowest_iterations() {
  std::vector<double> slowest(static_cast<std::size_t>(options_.iterations), 0.0);
  for (int rank = 0; rank < job_.ranks(); ++rank) {
    const double* times = job_.iteration_times(rank);
    for (std::size_t index = 0; index < slowest.size(); ++index) {
      slowest[index] = std::max(slowest[index], times[index] * 1e6 / options_.aggregated);
    }
  }
  return statistics_of(std::move(slowest));
}

bool RankRun::time_row(const Prepared& prepared, Placement& result) {
  Elapsed elapsed = {0, nullptr};
  if (!iterate(prepared, options_.warmups, elapsed)) return false;
  elapsed.iterations = options_.report_iterations ? job_.iteration_times(rank_) : nullptr;
  const bool in_graph = options_.graph_launches > 0;
  if (in_graph && !record_iterations(prepared)) return false;
  if (!job_.barrier()) return false;
  if (!(in_graph ? launch_iterations(elapsed) : iterate(prepared, options_.iterations, elapsed))) return false;
  if (!job_.barrier()) return false;
  // Read before exchange(), after which other ranks may overwrite it.
  if (options_.report_iterations && rank_ == 0) result.iterations = slowest_iterations();
  std::vector<double> seconds(static_cast<std::size_t>(job_.ranks()));
  if (!exchange(elapsed.seconds / options_.iterations / options_.aggregated, seconds)) return false;
  const double time = combine(options_.average, seconds);
  const Case& shape = prepared.call.shape;
  const double bytes = program_.bytes(shape.layout, prepared.element_size, shape.ranks);
  result.time_us = time * 1e6;
  result.algorithm_bandwidth = time > 0 ? bytes / time / 1e9 : 0;
  result.bus_bandwidth = result.algorithm_bandwidth * program_.bus_factor(shape.ranks);
  return true;
}

// The library may choose a codec for such sums although no codec is named.
bool RankRun::links_may_code(const RowPlan& row) const {
  return !options_.coded() && program_.reduces == Reduces::yes && row.type == setoFloat32 && sums(row.op);
}

// Only rank 0 reads the dump, because every rank ran the same plan.
bool RankRun::ask_codec(Prepared& prepared, Placement& result) {
  const bool by_link = links_may_code(prepared.row);
  if (!options_.coded() && !by_link) return true;
  result.travelled_in = kExact;
  if ((prepared.row.codec == kExact && !by_link) || job_.ranks() == 1) return true;
  if (by_link) prepared.row.codec = kCodecOfLinks;
  if (rank_ == 0) result.travelled_in = travelled_in(comm_);
  std::vector<double> encoded(static_cast<std::size_t>(job_.ranks()));
  if (!exchange(rank_ == 0 && result.travelled_in != kExact ? 1 : 0, encoded)) return false;
  prepared.encoded = encoded[0] != 0;
  return true;
}

void RankRun::fill_input(const Prepared& prepared) {
  const Case& shape = prepared.call.shape;
  auto* send = on_host(static_cast<std::byte*>(const_cast<void*>(prepared.call.send)));
  // Poison first: in place, the input lies inside the poisoned part.
  std::memset(on_host(receive_), kPoisonByte, prepared.row_size + kGuardSize);
  const std::span<std::byte> input(send, shape.layout.send_count * prepared.element_size);
  if (program_.reduces == Reduces::yes) {
    fill_reduce_input(prepared.pattern, rank_, 0, input);
  } else {
    fill_moved_input(prepared.pattern.seed, rank_, prepared.element_size, 0, input);
  }
}

std::uint64_t RankRun::compare(const Prepared& prepared) const {
  const Case& shape = prepared.call.shape;
  const std::size_t size = prepared.element_size;
  const auto* receive = on_host(static_cast<const std::byte*>(prepared.call.receive));
  std::vector<std::byte> expected(kCompareSize);
  std::uint64_t wrong = 0;
  for (const Segment& segment : program_.expected(shape)) {
    for (std::size_t done = 0; done < segment.count;) {
      const std::size_t count = std::min(segment.count - done, kCompareSize / size);
      const std::span<std::byte> want(expected.data(), count * size);
      const std::span<const std::byte> have(receive + (segment.offset + done) * size, count * size);
      if (segment.source == kAllRanks) {
        fill_reduce_expected(prepared.pattern, segment.source_offset + done, want);
        wrong += prepared.bound > 0 ? count_beyond(prepared.row.type, prepared.bound, want, have)
                                    : count_wrong(prepared.pattern, want, have);
      } else if (program_.reduces == Reduces::yes) {
        fill_reduce_input(prepared.pattern, segment.source, segment.source_offset + done, want);
        wrong += count_differing(size, want, have);
      } else {
        fill_moved_input(prepared.pattern.seed, segment.source, size, segment.source_offset + done, want);
        wrong += count_differing(size, want, have);
      }
      done += count;
    }
  }
  const bool apart = prepared.where == Where::out_of_place;
  const std::byte* guard = on_host(receive_) + (apart ? shape.layout.receive_count * size : prepared.row_size);
  const bool intact = std::all_of(guard, guard + kGuardSize, [](std::byte b) { return b == std::byte{kPoisonByte}; });
  return wrong + (intact ? 0 : 1);
}

// Uses the largest magnitude of all ranks and elements. A codec scales each block separately, so no block has a larger one.
bool RankRun::find_bound(Prepared& prepared) {
  std::vector<double> largest(static_cast<std::size_t>(job_.ranks()));
  const Op op = prepared.row.op;
  const std::size_t bytes = prepared.call.shape.layout.send_count * prepared.element_size;
  const std::span<const std::byte> input(on_host(static_cast<const std::byte*>(prepared.call.send)), bytes);
  if (!exchange(prepared.encoded ? largest_magnitude(prepared.row.type, input) : 0, largest)) return false;
  if (!prepared.encoded) return true;
  prepared.largest = *std::max_element(largest.begin(), largest.end()) * (op == Op::mul_sum ? largest_scalar() : 1);
  return ok(
      setoCodecErrorBound(codec_named(prepared.row.codec), prepared.row.type, job_.ranks(), prepared.largest, &prepared.bound),
      "error bound");
}

bool RankRun::check_once(Prepared& prepared, std::uint64_t& wrong) {
  const std::size_t size = prepared.row_size + kGuardSize;
  if (gpu_ != nullptr) {
    send_copy_.resize(size);
    receive_copy_.resize(size);
  }
  fill_input(prepared);
  if (!find_bound(prepared)) return false;
  if (gpu_ != nullptr && !(ok(gpu_->copy_in(send_, send_copy_.data(), size), "copy") &&
                           ok(gpu_->copy_in(receive_, receive_copy_.data(), size), "copy")))
    return false;
  if (!call_once(prepared.call)) return false;
  if (gpu_ != nullptr && !ok(gpu_->copy_out(receive_copy_.data(), receive_, size), "copy")) return false;
  wrong += compare(prepared);
  return true;
}

bool RankRun::check_row(const Prepared& prepared, Placement& result) {
  std::uint64_t wrong = 0;
  Prepared checked = prepared;
  if (checked.call.config != nullptr) checked.call.config = &checked.config;
  for (int check = 0; check < options_.checks; ++check) {
    checked.pattern.seed = seed_++;
    if (!check_once(checked, wrong)) return false;
  }
  if (!idle(send_, prepared.row_size + kGuardSize) || !idle(receive_, prepared.row_size + kGuardSize)) return false;
  std::vector<double> all(static_cast<std::size_t>(job_.ranks()));
  if (!exchange(static_cast<double>(wrong), all)) return false;
  result.tolerance = checked.bound;
  result.largest = checked.largest;
  double sum = 0;
  for (const double value : all) sum += value;
  result.wrong = static_cast<std::uint64_t>(sum);
  return true;
}

bool RankRun::measure(const RowPlan& row, Where where, Placement& result) {
  Prepared prepared;
  result = {};
  if (!prepare(row, where, prepared) || !time_row(prepared, result) || !ask_codec(prepared, result)) return false;
  if (options_.checks > 0 && !check_row(prepared, result)) return false;
  const bool custom = program_.reduces == Reduces::yes && row.op == Op::mul_sum;
  return !custom || ok(setoRedOpDestroy(prepared.call.op, comm_), "destroy mulsum");
}

}  // namespace seto::bench
