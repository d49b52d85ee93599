#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/codec/codec.h"
#include "src/engine/bound_program.h"
#include "src/engine/device/device_lowering.h"

// Calls that a host and GPUs execute from the same plan, and whose results are compared bit for bit.
namespace seto::support {

struct DeviceJob {
  const Algorithm* algorithm = nullptr;
  int ranks = 2;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t count = 0;
  std::uint64_t slice_elements = 64;
  Rank root = 0;
  bool in_place = false;  // where the collective has such a call
  std::optional<Codec> codec{};
  bool owes = false;  // errors of codecs are added in the next operation
  std::uint32_t blocks = 1;
  bool lends = false;   // every rank reads the buffers of all others
  bool marked = false;  // one exchange of marked messages: one block and one slice

  [[nodiscard]] std::string text() const;
  [[nodiscard]] Tiers tiers() const;
  [[nodiscard]] Shape shape() const;
  // Whether the algorithm has a plan for it.
  [[nodiscard]] bool exists() const;
  [[nodiscard]] InPlace in_place_on(Rank rank) const;
  [[nodiscard]] DeviceCut cut() const;
  // The programs of all ranks, with slots that are deep enough for the skewed order.
  [[nodiscard]] std::vector<BoundProgram> programs() const;
};

// Jobs for every algorithm with so many ranks. Types, operations, counts, slices, roots and numbers of blocks take turns, so that
// all of them appear with each algorithm of some number of ranks.
[[nodiscard]] std::vector<DeviceJob> device_jobs(int ranks, std::uint64_t longest);
// The same for codecs.
[[nodiscard]] std::vector<DeviceJob> coded_device_jobs(int ranks);
// Jobs in which some rank lends messages, in place and out of place.
[[nodiscard]] std::vector<DeviceJob> lending_device_jobs(int ranks, std::uint64_t longest);
// The channels that a job lends, and those that it has.
struct LentCount {
  std::size_t lent = 0, all = 0;
};
[[nodiscard]] LentCount lent_channels(const std::vector<BoundProgram>& programs);

// The memory of one rank for one operation. Inputs are random bits in every other operation, NaN and infinities included, and
// ordinary numbers in the others.
struct DeviceMemory {
  std::vector<std::byte> input;    // empty in place
  std::vector<std::byte> output;   // in place: both
  std::uint64_t input_offset = 0;  // in place, in `output`
  std::uint64_t output_offset = 0;
  std::vector<std::byte> scalar;

  DeviceMemory(const DeviceJob& job, Rank rank, std::uint64_t seed);
  [[nodiscard]] const std::byte* input_data() const { return input.empty() ? output.data() + input_offset : input.data(); }
  [[nodiscard]] std::byte* output_data() { return output.data() + output_offset; }
};

// The residuals of one rank, which stay from one operation to the next.
[[nodiscard]] std::vector<std::byte> no_residuals(const DeviceJob& job);

// The host's engine runs the operation on the memory of all ranks.
[[nodiscard]] Status run_on_host(const std::vector<BoundProgram>& programs, std::vector<DeviceMemory>& memory,
                                 std::vector<std::vector<std::byte>>& residuals);

// Runs operations of a job, whose memory `run` gives to devices, and expects the bits of the host in all memory of all ranks.
using DeviceOperation = std::function<Status(std::vector<DeviceMemory>& memory, std::vector<std::vector<std::byte>>& residuals)>;
void expect_bits_of_host(const DeviceJob& job, const std::vector<BoundProgram>& programs, std::uint64_t seed,
                         std::uint64_t operations, const DeviceOperation& run);

// The failure of kernels that were stopped after they waited for so long; ok if no block says that it was. `reports`: by block.
[[nodiscard]] Status stop_failure(std::size_t rank, std::span<const std::uint64_t> reports, std::uint64_t timeout_ms);

}  // namespace seto::support
