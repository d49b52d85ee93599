#include "tests/device_engine/device_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "src/engine/block_interpreter.h"
#include "src/engine/coding.h"
#include "src/engine/device/device_lending.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/lowering.h"
#include "tests/conformance/engine_world.h"

namespace seto::support {
namespace {

// The same call as the tests of the host's engine state it.
Job job_of(const DeviceJob& job) {
  Job same{job.algorithm, job.ranks, job.type, job.op, job.count};
  same.root = job.root;
  return same;
}

Finish finish_of(const DeviceJob& job) {
  if (job.op == ReduceOp::premul_sum) return Finish::scale_contributions;
  if (job.op != ReduceOp::avg) return Finish::none;
  return is_integer(job.type) ? Finish::divide_result : Finish::scale_contributions;
}

// Writes a value of a float type, in its own bits.
void put_number(DataType type, double value, std::byte* at) {
  if (type == DataType::float64) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const auto single = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(single);
  if (type == DataType::float32) std::memcpy(at, &bits, sizeof bits);
  const auto high = static_cast<std::uint16_t>(bits >> 16);
  if (type == DataType::bfloat16) std::memcpy(at, &high, sizeof high);
}

bool is_wide_float(DataType type) { return type == DataType::float64 || type == DataType::float32 || type == DataType::bfloat16; }

void fill(DataType type, std::vector<std::byte>& bytes, std::mt19937_64& random, bool ordinary) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (!ordinary || !is_wide_float(type)) return;
  const std::size_t size = size_of(type);
  for (std::size_t i = 0; i < bytes.size() / size; ++i)
    put_number(type, static_cast<double>(static_cast<std::int64_t>(random() % 2'000'001) - 1'000'000) / 700'000.0,
               &bytes[i * size]);
}

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max,        ReduceOp::avg,     ReduceOp::prod,   ReduceOp::min,
                             ReduceOp::sum, ReduceOp::premul_sum, ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor};

}  // namespace

std::string DeviceJob::text() const {
  std::string text = std::string(name_of(algorithm->collective)) + "/" + std::string(algorithm->name) + " of " +
                     std::to_string(ranks) + " ranks, " + std::to_string(count) + " " + std::string(name_of(type)) + ", " +
                     std::string(name_of(op)) + ", slices of " + std::to_string(slice_elements) + ", " + std::to_string(blocks) +
                     " blocks";
  if (in_place) text += ", in place";
  if (codec) text += ", in " + std::string(facts_of(*codec).name);
  if (owes) text += ", with residuals";
  if (lends) text += ", lent";
  if (marked) text += ", marked";
  return text;
}

Tiers DeviceJob::tiers() const { return tiers_for(job_of(*this)); }

Shape DeviceJob::shape() const {
  Shape shape{algorithm->collective, ranks, root, 1, finish_of(*this)};
  shape.pieces = algorithm->pieces(shape, tiers());
  if (!codec) return shape;
  shape.codec = plan_number(*codec);
  shape.coded_tiers = static_cast<std::uint8_t>(1U << (tiers().count() - 1));
  return shape;
}

bool DeviceJob::exists() const {
  if (is_bitwise(op) && !is_integer(type)) return false;
  if (codec && (!encodes(*codec, type) || !sums(op) || algorithm->encodings(shape(), tiers()) == 0)) return false;
  return algorithm->refuses(shape(), tiers()).empty();
}

InPlace DeviceJob::in_place_on(Rank rank) const {
  return in_place && shared_at(job_of(*this), rank) ? InPlace::yes : InPlace::no;
}

DeviceCut DeviceJob::cut() const {
  const Layout layout = Layout::uniform(shape(), 0, count, static_cast<std::uint32_t>(64 / size_of(type)));
  return {.blocks = blocks, .longest = std::max<std::uint64_t>(1, layout.longest()), .marked = marked};
}

std::vector<BoundProgram> DeviceJob::programs() const {
  const auto lowered_for = [&](Rank rank, InPlace placed) {
    return lower(build_program(*algorithm, shape(), tiers(), rank, placed), shape(), placed, rules_for(type));
  };
  std::vector<Program> apart, shared;  // by rank, for buffers of both kinds
  std::vector<LendingRank> variants;
  std::uint32_t depth = 1;
  for (Rank rank = 0; rank < ranks; ++rank) {
    apart.push_back(lowered_for(rank, InPlace::no));
    shared.push_back(lowered_for(rank, shared_at(job_of(*this), rank) ? InPlace::yes : InPlace::no));
    depth = std::max(depth, apart.back().stages() + 1);
  }
  for (std::size_t rank = 0; rank < apart.size(); ++rank)
    variants.push_back({&apart[rank], shared_at(job_of(*this), static_cast<Rank>(rank)) ? &shared[rank] : nullptr});
  std::optional<DeviceLending> lending;
  if (lends) lending.emplace(variants, shape());
  std::vector<BoundProgram> bound;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const InPlace placed = in_place_on(rank);
    const Layout layout = Layout::uniform(shape(), rank, count, static_cast<std::uint32_t>(64 / size_of(type)));
    std::vector<LentChannel> lent;
    if (lending) lent = lending->channels_of(rank, placed);
    const Program& program = (placed == InPlace::yes ? shared : apart)[static_cast<std::size_t>(rank)];
    bound.push_back(
        bind_program({&program, shape(), placed, &layout, type, op, 77, {marked ? cut().longest : slice_elements, depth}, lent})
            .value());
  }
  return bound;
}

LentCount lent_channels(const std::vector<BoundProgram>& programs) {
  LentCount count;
  for (const BoundProgram& program : programs)
    for (const BoundStream& stream : program.streams) {
      if (stream.address.sender != static_cast<std::uint32_t>(program.rank)) continue;
      ++count.all;
      if (stream.lent) ++count.lent;
    }
  return count;
}

std::vector<DeviceJob> lending_device_jobs(int ranks, std::uint64_t longest) {
  std::vector<DeviceJob> jobs;
  for (DeviceJob job : device_jobs(ranks, longest))
    for (const bool in_place : {false, true}) {
      job.lends = true;
      job.in_place = in_place;
      if (lent_channels(job.programs()).lent > 0) jobs.push_back(job);
    }
  return jobs;
}

std::vector<DeviceJob> device_jobs(int ranks, std::uint64_t longest) {
  std::vector<DeviceJob> jobs;
  std::size_t turn = static_cast<std::size_t>(ranks) * 5;
  for (const Algorithm& algorithm : algorithms())
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, longest / 3 + 5, longest}) {
      ++turn;
      DeviceJob job{&algorithm, ranks, static_cast<DataType>(turn % kDataTypeCount), kOps[turn / 2 % std::size(kOps)], count};
      if (is_bitwise(job.op) && !is_integer(job.type)) job.op = ReduceOp::sum;
      job.slice_elements = 33 + turn % 5 * 70;
      job.root = static_cast<Rank>(turn % static_cast<std::size_t>(ranks));
      job.in_place = turn % 3 == 1;
      job.blocks = 1 + static_cast<std::uint32_t>(turn % 3);
      if (job.exists()) jobs.push_back(job);
    }
  return jobs;
}

std::vector<DeviceJob> coded_device_jobs(int ranks) {
  constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::bfloat16};
  std::vector<DeviceJob> jobs;
  std::size_t turn = static_cast<std::size_t>(ranks);
  for (const Algorithm& algorithm : algorithms())
    for (int codec = 0; codec < kCodecCount; ++codec) {
      ++turn;
      DeviceJob job{&algorithm, ranks, kTypes[turn % std::size(kTypes)], turn % 4 == 3 ? ReduceOp::avg : ReduceOp::sum};
      job.codec = static_cast<Codec>(codec);
      if (!encodes(*job.codec, job.type)) job.type = DataType::float32;
      job.count = turn % 5 == 4 ? 1 : 700 + turn % 7 * 100;
      job.slice_elements = 200 + turn % 3 * 200;
      job.root = static_cast<Rank>(turn % static_cast<std::size_t>(ranks));
      job.in_place = turn % 3 == 1;
      job.owes = turn % 2 == 1;
      job.blocks = 1 + static_cast<std::uint32_t>(turn % 2);
      if (job.exists()) jobs.push_back(job);
    }
  return jobs;
}

DeviceMemory::DeviceMemory(const DeviceJob& job, Rank rank, std::uint64_t seed) {
  std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(rank));
  const std::size_t size = size_of(job.type);
  const Sizes sizes = sizes_of(job_of(job));
  const bool in_place = job.in_place_on(rank) == InPlace::yes;
  const bool ordinary = seed % 2 == 0;
  output.resize((in_place ? std::max(sizes.input, sizes.output) : sizes.output) * size, std::byte{0xee});
  if (in_place) {
    const std::uint64_t shift = *shared_at(job_of(job), rank) * size;
    input_offset = sizes.input < sizes.output ? shift : 0;
    output_offset = sizes.output < sizes.input ? shift : 0;
    fill(job.type, output, random, ordinary);
  } else {
    input.resize(sizes.input * size);
    fill(job.type, input, random, ordinary);
  }
  scalar.resize(8);
  const double factor = job.op == ReduceOp::avg ? 1.0 / job.ranks : 0.75 + rank;
  if (is_integer(job.type))
    scalar[0] = std::byte{3};
  else
    put_number(job.type == DataType::float64 ? DataType::float64 : DataType::float32, factor, scalar.data());
}

std::vector<std::byte> no_residuals(const DeviceJob& job) {
  return std::vector<std::byte>(job.owes ? sizes_of(job_of(job)).input * size_of(residual_type(job.type)) : 0);
}

Status run_on_host(const std::vector<BoundProgram>& programs, std::vector<DeviceMemory>& memory,
                   std::vector<std::vector<std::byte>>& residuals) {
  std::vector<BlockBuffers> buffers;
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    buffers.push_back({memory[rank].input_data(), memory[rank].output_data(), memory[rank].scalar.data(),
                       residuals[rank].empty() ? nullptr : residuals[rank].data()});
  return run_blocks({.programs = programs, .buffers = buffers, .capacity = 4, .timeout_ms = 100'000});
}

void expect_bits_of_host(const DeviceJob& job, const std::vector<BoundProgram>& programs, std::uint64_t seed,
                         std::uint64_t operations, const DeviceOperation& run) {
  std::vector<std::vector<std::byte>> host_residuals(programs.size(), no_residuals(job));
  std::vector<std::vector<std::byte>> device_residuals = host_residuals;
  for (std::uint64_t operation = 0; operation < operations; ++operation) {
    std::vector<DeviceMemory> host;
    for (Rank rank = 0; rank < job.ranks; ++rank) host.emplace_back(job, rank, seed + operation);
    std::vector<DeviceMemory> device = host;
    const Status right = run_on_host(programs, host, host_residuals);
    ASSERT_TRUE(right.ok()) << right.text();
    const Status status = run(device, device_residuals);
    ASSERT_TRUE(status.ok()) << status.text();
    for (std::size_t rank = 0; rank < host.size(); ++rank) {
      ASSERT_EQ(device[rank].output, host[rank].output) << "operation " << operation << ", rank " << rank;
      ASSERT_EQ(device[rank].input, host[rank].input) << "operation " << operation << ", rank " << rank;
    }
    ASSERT_EQ(device_residuals, host_residuals) << "operation " << operation;
  }
}

Status stop_failure(std::size_t rank, std::span<const std::uint64_t> reports, std::uint64_t timeout_ms) {
  const auto stopped = std::find_if(reports.begin(), reports.end(), [](std::uint64_t word) { return word != 0; });
  if (stopped == reports.end()) return {};
  const kernels::StopReport report = kernels::stop_report_of(*stopped);
  return failure(Code::timeout, "rank %zu, block %td: step %u, slice %u waited %ju ms for operand %u", rank,
                 stopped - reports.begin(), report.step, report.slice, std::uintmax_t{timeout_ms}, report.operand);
}

}  // namespace seto::support
