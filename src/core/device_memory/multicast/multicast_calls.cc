#include "src/core/device_memory/multicast/multicast_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "src/base/log.h"
#include "src/core/call/call_shape.h"
#include "src/core/device_memory/shape_room.h"

namespace seto {
namespace {

using kernels::MulticastSum;

// Shorter calls are not worth two meetings of all ranks. Like the share of a block it is not measured.
constexpr std::uint64_t kLeastBytes = 64 << 10;
constexpr std::uint64_t kLeastOfBlock = 32 << 10;

MulticastSum sum_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return MulticastSum::float32;
    case DataType::float64:
      return MulticastSum::float64;
    case DataType::float16:
      return MulticastSum::float16;
    case DataType::bfloat16:
      return MulticastSum::bfloat16;
    case DataType::int32:
    case DataType::uint32:
      return MulticastSum::integer32;
    case DataType::int64:
    case DataType::uint64:
      return MulticastSum::integer64;
    default:
      return MulticastSum::none;
  }
}

}  // namespace

Result<std::unique_ptr<MulticastCalls>> MulticastCalls::create(const MulticastMemory::Setup& setup, const Config& config,
                                                               DeviceShapes& staging, Bootstrap& bootstrap, Deadline until) {
  const bool is_asked = std::any_of(setup.statements.begin(), setup.statements.end(), [](const RankStatement& one) {
    return one.multicast != static_cast<std::uint32_t>(MulticastOffer::not_asked);
  });
  std::unique_ptr<MulticastCalls> made(new MulticastCalls(setup, config, staging));
  if (!is_asked || setup.statements.size() == 1) return made;
  SETO_ASSIGN(made->most_blocks_, blocks_of(setup.statements, kernels::kMostMulticastBlocks));
  std::string obstacle = MulticastMemory::obstacle_to(setup);
  if (obstacle.empty()) {
    const ContextScope scope(*setup.gpu);
    SETO_TRY(scope.status());
    SETO_ASSIGN(obstacle, MulticastMemory::agree(setup, made->memory_, bootstrap, until));
  }
  made->is_ready_ = obstacle.empty();
  if (!made->is_ready_)
    SETO_LOG_AS(warn, (LogOrigin{setup.rank, 0}), "SETO_NVLS: no call uses NVLink multicast: %s", obstacle.c_str());
  else if (setup.rank == 0)
    SETO_LOG_AS(info, (LogOrigin{setup.rank, 0}),
                "SETO_NVLS: sums of all_reduce of %llu KiB or more use NVLink multicast, which no GPU has run yet",
                static_cast<unsigned long long>(kLeastBytes >> 10));
  return made;
}

MulticastCalls::MulticastCalls(const MulticastMemory::Setup& setup, const Config& config, DeviceShapes& staging)
    : gpu_(*setup.gpu),
      staging_(staging),
      is_pinned_(!config.algorithm.empty()),
      is_deterministic_(config.deterministic),
      rank_(static_cast<std::uint32_t>(setup.rank)),
      ranks_(static_cast<std::uint32_t>(setup.statements.size())) {}

// All ranks find the same, from what the digest of the call has.
bool MulticastCalls::takes(const Call& call, const DeviceShape& shape) const {
  if (call.collective != Collective::all_reduce || call.op != ReduceOp::sum || sum_of(call.type) == MulticastSum::none)
    return false;
  if (call.count * size_of(call.type) < kLeastBytes) return false;
  if (call.algorithm != 0 || is_pinned_) return false;
  if (shape.kernel != gpu_.kernel(call.type)) return false;                    // it encodes
  return is_integer(call.type) || !(call.deterministic || is_deterministic_);  // the switch sums in an order of its own
}

Result<std::shared_ptr<DeviceShape>> MulticastCalls::find(const Call& call, const std::shared_ptr<DeviceShape>& shape,
                                                          std::uint64_t ended) {
  if (!is_ready_ || !takes(call, *shape)) return shape;
  if (const auto found = shapes_.find(shape); found != shapes_.end()) return found->second;
  make_room(shapes_, kMostShapes, ended, staging_);
  SETO_ASSIGN(std::shared_ptr<DeviceShape> made, bind(call, *shape));
  return shapes_.emplace(shape, std::move(made)).first->second;
}

Result<std::shared_ptr<DeviceShape>> MulticastCalls::bind(const Call& call, const DeviceShape& shape) const {
  kernels::MulticastProgram program;
  program.sum = sum_of(call.type);
  program.rank = rank_;
  program.ranks = ranks_;
  program.size = call.count * size_of(call.type);
  program.blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(program.size / kLeastOfBlock, 1, most_blocks_));
  const std::uint64_t units = (program.size + kernels::kMulticastUnit - 1) / kernels::kMulticastUnit;
  const std::uint64_t piece = (units + program.blocks - 1) / program.blocks * kernels::kMulticastUnit;
  program.piece = std::min<std::uint64_t>(piece, kernels::kMulticastPiece);
  program.own = memory_->own();
  program.all = memory_->all();

  auto made = std::make_shared<DeviceShape>(shape);
  made->is_copied = made->is_captured = made->lends = false;
  made->is_multicast = true;
  made->scratch_size = 0;
  made->kernel = gpu_.multicast_kernel();
  made->blocks = program.blocks;
  const std::uint64_t units_of_rank = program.piece / kernels::kMulticastUnit / ranks_ + 1;
  made->threads = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      std::bit_ceil(units_of_rank), kWarp, std::bit_floor(static_cast<std::uint64_t>(gpu_.most_threads()))));
  made->plan = "NVLink multicast all_reduce";
  made->done_peers.clear();
  for (Rank peer = 0; peer < static_cast<Rank>(ranks_); ++peer) made->done_peers.push_back(peer);
  for (const std::uint64_t word : {std::uint64_t{program.blocks}, program.piece})
    made->note.digest = folded(made->note.digest, word);
  made->recorded = recorded(call, {program.size, 0, 0, made->note.digest});  // no algorithm, no codec
  made->image.resize(sizeof program);
  std::memcpy(made->image.data(), &program, sizeof program);
  SETO_TRY(staging_.stage(made->image, {}, *made));
  SETO_LOG_AS(debug, (LogOrigin{static_cast<Rank>(rank_), 0}),
              "%s runs by NVLink multicast: %u blocks of %u threads, pieces of %llu bytes", made->what.c_str(), made->blocks,
              made->threads, static_cast<unsigned long long>(program.piece));
  return made;
}

}  // namespace seto
