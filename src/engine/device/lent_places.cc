#include "src/engine/device/lent_places.h"

#include <cstring>

#include "src/engine/kernels/device_program.h"

namespace seto {
namespace {

using kernels::DeviceOperand;
using kernels::DeviceProgram;
using kernels::DeviceStep;
using kernels::OperandSpace;

template <class T>
T read_at(std::span<const std::byte> program, std::size_t place) {
  T value;
  std::memcpy(&value, program.subspan(place, sizeof value).data(), sizeof value);
  return value;
}

}  // namespace

// A kernel adds the offset of a lent target to the address of its buffer, and takes it from the first piece of the step.
void place_lent(std::span<std::byte> program, std::span<const Rank> end_peers, std::span<const LentDistance> distances) {
  const auto begin = read_at<DeviceProgram>(program, 0);
  const auto steps = read_at<std::uint32_t>(program, begin.first_steps + begin.stages * sizeof(std::uint32_t));
  for (std::uint32_t s = 0; s < steps; ++s) {
    const auto step = read_at<DeviceStep>(program, begin.steps + s * sizeof(DeviceStep));
    const std::uint32_t operands = step.source_count + step.target_count;
    for (std::uint32_t k = operands - step.lent_targets; k < operands; ++k) {
      const auto operand =
          read_at<DeviceOperand>(program, begin.operands + (std::size_t{step.first_operand} + k) * sizeof(DeviceOperand));
      const LentDistance& distance = distances[static_cast<std::size_t>(end_peers[operand.end])];
      const std::size_t place = begin.offsets + (std::size_t{step.first_offset} + k) * sizeof(std::uint64_t);
      const std::uint64_t offset =
          read_at<std::uint64_t>(program, place) + (operand.space == OperandSpace::lent_input ? distance.input : distance.output);
      std::memcpy(program.subspan(place, sizeof offset).data(), &offset, sizeof offset);
    }
  }
}

}  // namespace seto
