#include "tests/software_gpu/special_registers.h"

#include <array>

#include "tests/software_gpu/block.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu {
namespace {

struct Row {
  std::string_view name;
  SpecialRegister which;
};

using enum SpecialRegister;
constexpr std::array<Row, 31> kRows{{
    {"%tid.x", tid_x},
    {"%tid.y", tid_y},
    {"%tid.z", tid_z},
    {"%ntid.x", ntid_x},
    {"%ntid.y", ntid_y},
    {"%ntid.z", ntid_z},
    {"%ctaid.x", ctaid_x},
    {"%ctaid.y", ctaid_y},
    {"%ctaid.z", ctaid_z},
    {"%nctaid.x", nctaid_x},
    {"%nctaid.y", nctaid_y},
    {"%nctaid.z", nctaid_z},
    {"%laneid", laneid},
    {"%warpid", warpid},
    {"%nwarpid", nwarpid},
    {"%smid", smid},
    {"%nsmid", nsmid},
    {"%gridid", gridid},
    {"%lanemask_eq", lanemask_eq},
    {"%lanemask_lt", lanemask_lt},
    {"%lanemask_le", lanemask_le},
    {"%lanemask_gt", lanemask_gt},
    {"%lanemask_ge", lanemask_ge},
    {"%clock", clock},
    {"%clock_hi", globaltimer_hi},
    {"%clock64", clock64},
    {"%globaltimer", globaltimer},
    {"%globaltimer_lo", globaltimer_lo},
    {"%globaltimer_hi", globaltimer_hi},
    {"%dynamic_smem_size", dynamic_smem_size},
    {"%total_smem_size", total_smem_size},
}};

std::uint32_t part(const std::array<std::uint32_t, 3>& values, SpecialRegister which, SpecialRegister first) {
  return values[static_cast<std::size_t>(which) - static_cast<std::size_t>(first)];
}

}  // namespace

std::optional<SpecialRegister> special_register_named(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.which;
  return std::nullopt;
}

std::uint64_t read_special(const Thread& thread, SpecialRegister which) {
  const Block& block = thread.block;
  const LaunchRequest& request = block.launch.request;
  const std::uint32_t own = 1U << thread.lane;
  if (which <= tid_z) {
    const Dim3& size = request.block;
    return part({thread.index % size.x, thread.index / size.x % size.y, thread.index / (size.x * size.y)}, which, tid_x);
  }
  if (which <= ntid_z) return part(request.block.values(), which, ntid_x);
  if (which <= ctaid_z) return part(block.place.index, which, ctaid_x);
  if (which <= nctaid_z) return part(request.grid.values(), which, nctaid_x);
  switch (which) {
    case laneid:
      return thread.lane;
    case warpid:
      return thread.warp.index;
    case nwarpid:
      return block.warps.size();
    case smid:
      return block.place.multiprocessor;
    case nsmid:
      return block.machine.settings().multiprocessors;
    case gridid:
      return block.launch.number;
    case lanemask_eq:
      return own;
    case lanemask_lt:
      return own - 1;
    case lanemask_le:
      return own | (own - 1);
    case lanemask_gt:
      return static_cast<std::uint32_t>(~(own | (own - 1)));
    case lanemask_ge:
      return static_cast<std::uint32_t>(~(own - 1));
    case clock:
    case globaltimer_lo:
      return static_cast<std::uint32_t>(block.machine.steps());
    case clock64:
    case globaltimer:
      return block.machine.steps();
    case globaltimer_hi:
      return block.machine.steps() >> 32;
    case dynamic_smem_size:
      return request.dynamic_shared;
    case total_smem_size:
      return block.shared.size();
    default:
      return 0;  // those of the ranges above
  }
}

}  // namespace seto::software_gpu
