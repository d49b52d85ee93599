#include "src/core/device_memory/device_shapes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "algorithms/algorithm.h"
#include "src/base/log.h"
#include "src/core/call/call_shape.h"
#include "src/core/call/ids.h"
#include "src/core/device_memory/device_costs.h"
#include "src/core/device_memory/device_cut.h"
#include "src/core/device_memory/shape_room.h"
#include "src/engine/coding.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/lowering.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::uint64_t kBytesOfThread = 16;

// The scalar by which a rank multiplies, in the accumulator type.
std::array<std::byte, 8> scalar_of(const Call& call, int ranks) {
  std::array<std::byte, 8> bytes{};
  if (call.op == ReduceOp::premul_sum) {
    if (call.scalar != nullptr) std::memcpy(bytes.data(), call.scalar, scalar_size(call.type));
  } else if (call.type == DataType::float64) {
    const double scalar = 1.0 / ranks;
    std::memcpy(bytes.data(), &scalar, sizeof scalar);
  } else {
    const float scalar = 1.0F / static_cast<float>(ranks);
    std::memcpy(bytes.data(), &scalar, sizeof scalar);
  }
  return bytes;
}

// A checksum of all that ranks must agree on.
std::uint32_t digest_of(const Call& call, const Choice& choice, const BoundProgram& program, const DeviceCut& cut) {
  std::uint32_t digest = kNoDigest;
  for (const std::uint64_t word :
       {static_cast<std::uint64_t>(call.collective), static_cast<std::uint64_t>(call.type), static_cast<std::uint64_t>(call.op),
        static_cast<std::uint64_t>(call.root), call.count, program.slice_elements, std::uint64_t{cut.blocks},
        std::uint64_t{choice.codec}, std::uint64_t{cut.marked}})
    digest = folded(digest, word);
  for (const char character : choice.algorithm->name) digest = folded(digest, static_cast<std::uint64_t>(character));
  for (const std::uint64_t count : call.counts) digest = folded(digest, count);
  return digest;
}

// Slices that a sender may be ahead of its receiver on another host: those that are under way between them, and some more,
// because the relay takes and brings them in turns.
std::uint32_t rounds_ahead(const Cut& cut, const BoundProgram& program) {
  constexpr std::uint64_t kFewest = 4, kMost = 32;
  const std::uint64_t slice_bytes = std::max<std::uint64_t>(1, program.slice_elements * program.element_size);
  const std::uint64_t under_way = std::clamp(cut.window_bytes / slice_bytes + 1, kFewest, kMost);
  return static_cast<std::uint32_t>(std::min(under_way, program.slices));
}

// The peers of a program's ends, in the order in which the lowering numbers them.
std::vector<Rank> peers_of_ends(const BoundProgram& program) {
  std::vector<Rank> peers;
  for (const BoundStream& stream : program.streams) {
    if (stream.address.sender != static_cast<std::uint32_t>(program.rank)) {
      peers.push_back(static_cast<Rank>(stream.address.sender));
      continue;
    }
    for (const std::uint32_t receiver : stream.receivers) peers.push_back(static_cast<Rank>(receiver));
  }
  return peers;
}

}  // namespace

struct DeviceShapes::Chosen {
  Choice choice;
  Shape shape;
  std::uint32_t grain = 1;
  std::uint32_t depth = 2;
  std::uint64_t bytes = 0;
  std::vector<Program> lowered;  // by rank
  std::vector<InPlace> in_place;
  std::vector<std::vector<LentChannel>> lent;  // by rank; empty: this call lends nothing
  bool lends_all = false;                      // no channel has slots
  bool marked = false;                         // an exchange of marked messages, if its programs are one
  Relay::Readers readers;
};

struct DeviceShapes::Fitted {
  BoundProgram own;
  DeviceCut cut;
  DeviceEnds ends;
  RelayProgram relayed;
  std::size_t largest = 0;  // workspace or staging memory, which are of one size
  std::uint64_t slice_elements = 1;
};

Result<std::unique_ptr<DeviceShapes>> DeviceShapes::create(const Setup& setup) {
  std::unique_ptr<DeviceShapes> made(new DeviceShapes(setup));
  SETO_TRY(made->open());
  return made;
}

DeviceShapes::DeviceShapes(const Setup& setup)
    : setup_(setup), driver_(setup.gpu->driver()), arena_(driver_, ArenaMemory::device), staging_(driver_, ArenaMemory::pinned) {
  setup_.here.costs = &setup_.costs;
}

void DeviceShapes::use(const CostModel& costs, std::size_t workspace_capacity) {
  last_ = nullptr;
  for (const auto& [key, shape] : shapes_) unstage(*shape);
  shapes_.clear();
  setup_.costs = costs;
  setup_.workspace_capacity = workspace_capacity;
}

void DeviceShapes::allow_lending() {
  setup_.peer_buffers = PeerBuffers::in_reach;
  use(setup_.costs, setup_.workspace_capacity);
}

void DeviceShapes::allow_marks() {
  setup_.marks = true;
  use(setup_.costs, setup_.workspace_capacity);
}

Status DeviceShapes::open() {
  arena_.begin_with(setup_.first_piece, DeviceArena::kPiece);
  return staging_.prepare();
}

DeviceShapes::Key DeviceShapes::key_of(const Call& call) const {
  Key key{call.collective,
          call.type,
          call.op,
          in_place(call, setup_.rank, setup_.here.ranks),
          call.root,
          call.count,
          call.algorithm,
          call.codec,
          call.deterministic,
          setup_.relay != nullptr ? setup_.relay->readers_number() : 0,
          {},
          {call.counts.begin(), call.counts.end()},
          {call.displacements.begin(), call.displacements.end()}};
  if (call.op == ReduceOp::premul_sum) key.scalar = scalar_of(call, setup_.here.ranks);
  return key;
}

Result<std::shared_ptr<DeviceShape>> DeviceShapes::find(const Call& call, std::uint64_t ended) {
  const Key key = key_of(call);
  if (last_ != nullptr && *last_key_ == key) return last_;
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    if (shapes_.size() >= kMostShapes) last_ = nullptr;
    make_room(shapes_, kMostShapes, ended, *this);
    SETO_ASSIGN(std::shared_ptr<DeviceShape> shape, bind(call, key));
    found = shapes_.emplace(key, std::move(shape)).first;
  }
  last_key_ = &found->first;
  last_ = found->second;
  return last_;
}

DeviceShapes::~DeviceShapes() {
  for (const std::shared_ptr<DeviceResiduals>& one : residuals_) one->end();
}

// Calls that use a state share it until they have ended.
Result<std::shared_ptr<FeedbackMemory>> DeviceShapes::residuals(std::shared_ptr<GpuContext> gpu, std::size_t size) {
  std::erase_if(residuals_, [this](const std::shared_ptr<DeviceResiduals>& one) {
    if (one.use_count() > 1 || one->is_in_graph()) return false;
    one->end();
    arena_.release(one->address());
    return true;
  });
  SETO_ASSIGN(const kernels::Address address, arena_.allocate(size));
  SETO_ASSIGN(std::shared_ptr<DeviceResiduals> made, DeviceResiduals::create(std::move(gpu), address, size));
  residuals_.push_back(made);
  return std::shared_ptr<FeedbackMemory>(std::move(made));
}

Result<DeviceShapes::Chosen> DeviceShapes::chosen_for(const Call& call, const Key& key) const {
  const int ranks = setup_.here.ranks;
  const Question question = question_of(call, setup_.here);
  const Tiers& tiers = setup_.here.tiers_of(question);
  Chosen chosen;
  if (setup_.relay != nullptr) chosen.readers = setup_.relay->readers();
  if (chosen.readers.number != key.readers) chosen.readers = {};  // they have changed since
  SETO_ASSIGN(chosen.choice, choose(question, tiers, *setup_.here.costs));
  chosen.shape = Shape{call.collective, ranks, call.root, 1, finish_of(call)};
  chosen.shape.pieces = chosen.choice.algorithm->pieces(chosen.shape, tiers);
  chosen.shape.codec = chosen.choice.codec;
  chosen.shape.coded_tiers = chosen.choice.coded_tiers;
  chosen.grain = chosen.choice.codec != 0 ? facts_of(codec_of(chosen.choice.codec)).block
                                          : static_cast<std::uint32_t>(kCacheLine / size_of(call.type));
  chosen.bytes = question.bytes;
  // Channels do not depend on where buffers lie, so those of the other ranks need not be known.
  for (Rank rank = 0; rank < ranks; ++rank) {
    const InPlace placed = rank == setup_.rank ? key.in_place : InPlace::no;
    const Program plain = build_program(*chosen.choice.algorithm, chosen.shape, tiers, rank, placed);
    chosen.lowered.push_back(lower(plain, chosen.shape, placed, rules_for(call.type)));
    chosen.in_place.push_back(placed);
    chosen.depth = std::max(chosen.depth, chosen.lowered.back().stages() + 1);
  }
  lend(call, chosen, tiers);
  // A stated size of slices is obeyed, and marked messages have one slice.
  if (setup_.marks && chosen.choice.codec == 0 && chosen.lent.empty() && call.counts.empty() && call.count > 0 &&
      setup_.here.config->slice_bytes == kAutomatic)
    chosen.marked = pays_marks(
        *chosen.choice.algorithm, ranks,
        Layout::uniform(chosen.shape, setup_.rank, call.count, chosen.grain).longest() * size_of(call.type), setup_.costs);
  return chosen;
}

// The choice of messages that are lent must not depend on where the buffers of a rank lie, which the other ranks do not know.
void DeviceShapes::lend(const Call& call, Chosen& chosen, const Tiers& tiers) const {
  const std::uint64_t longest = Layout::uniform(chosen.shape, setup_.rank, call.count, chosen.grain).longest();
  if (setup_.peer_buffers == PeerBuffers::out_of_reach || !call.counts.empty()) return;
  LentMessages lent =
      lent_messages({*chosen.choice.algorithm, chosen.shape, tiers, call.type, longest}, chosen.lowered, chosen.in_place);
  chosen.lent = std::move(lent.channels);
  chosen.lends_all = lent.all;
}

Result<std::shared_ptr<DeviceShape>> DeviceShapes::bind(const Call& call, const Key& key) {
  const Question question = question_of(call, setup_.here);
  SETO_ASSIGN(const Chosen chosen, chosen_for(call, key));
  SETO_ASSIGN(const Fitted fitted, fit(call, chosen));
  auto shape = std::make_shared<DeviceShape>();
  shape->rank = setup_.rank;
  shape->blocks = fitted.cut.blocks;
  shape->lends = !chosen.lent.empty();
  const std::uint64_t bytes_of_block = fitted.own.slice_elements * fitted.own.element_size / fitted.cut.blocks;
  const std::uint64_t bytes_of_thread = fitted.cut.marked ? kernels::kDataOfWord : kBytesOfThread;
  shape->threads = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::bit_ceil(bytes_of_block / bytes_of_thread + 1), kWarp,
                                std::bit_floor(static_cast<std::uint64_t>(setup_.gpu->most_threads()))));
  shape->kernel = fitted.own.codec != 0 ? setup_.gpu->coded_kernel(call.type) : setup_.gpu->kernel(call.type);
  shape->scratch_size = fitted.own.scratch_size;
  shape->what = describe(call.collective, call.count, call.type, call.op, call.root);
  shape->plan = std::string(chosen.choice.algorithm->name) + " " + std::string(name_of(call.collective));
  shape->end_peers = peers_of_ends(fitted.own);
  shape->done_peers = done_peers();
  shape->note.words[0] = static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
                         static_cast<std::uint64_t>(call.op) << 16 | std::uint64_t{question.codec} << 24;
  shape->note.words[1] = call.count;
  shape->note.words[2] = is_rooted(call.collective) ? static_cast<std::uint64_t>(call.root) : 0;
  const std::uint32_t digest = shape->note.digest = digest_of(call, chosen.choice, fitted.own, fitted.cut);
  shape->recorded = recorded(call, {question.bytes, algorithm_id(chosen.choice.algorithm->name), chosen.choice.codec, digest});
  if (setup_.relay != nullptr) {
    SETO_ASSIGN(shape->relayed, setup_.relay->open(fitted.relayed, digest, chosen.choice.cut.window_bytes));
  }
  SETO_ASSIGN(shape->image, lower_to_device(fitted.own, fitted.cut, fitted.ends));
  SETO_TRY(stage(shape->image, scalar_of(call, setup_.here.ranks), *shape));
  SETO_LOG_AS(debug, (LogOrigin{setup_.rank, 0}),
              "%s runs on the GPU as %s%s%s: %u blocks of %u threads, slices of %llu elements%s", shape->what.c_str(),
              chosen.choice.algorithm->name.data(), chosen.choice.codec == 0 ? "" : " in ",
              chosen.choice.codec == 0 ? "" : codec_name(chosen.choice.codec).data(), shape->blocks, shape->threads,
              static_cast<unsigned long long>(fitted.own.slice_elements),
              chosen.lends_all    ? ", read in the buffers of the peers"
              : shape->lends      ? ", in part read in the buffers of the peers"
              : fitted.cut.marked ? ", with marked messages"
                                  : "");
  return shape;
}

// Where the other ranks put their parts does not matter for the channels, and only they know it.
Layout DeviceShapes::layout_of(const Call& call, const Chosen& chosen, Rank rank) const {
  if (call.counts.empty()) return Layout::uniform(chosen.shape, rank, call.count, chosen.grain);
  const auto displacements = rank == setup_.rank ? call.displacements : std::span<const std::uint64_t>();
  return Layout::table(chosen.shape, rank, call.counts, displacements, chosen.grain);
}

std::vector<Rank> DeviceShapes::done_peers() const {
  const auto own = static_cast<std::size_t>(setup_.rank);
  std::vector<Rank> peers;
  for (std::size_t peer = 0; peer < setup_.workspaces.size(); ++peer)
    if (peer != own && !setup_.pairs->has(own, peer)) peers.push_back(static_cast<Rank>(peer));
  peers.push_back(setup_.rank);
  return peers;
}

// Slices get shorter until all channels fit into the workspaces.
Result<DeviceShapes::Fitted> DeviceShapes::fit(const Call& call, const Chosen& chosen) const {
  const std::uint64_t element = size_of(call.type);
  const Layout layout = layout_of(call, chosen, setup_.rank);
  const std::uint64_t longest = std::max<std::uint64_t>(1, layout.longest());
  if (chosen.marked) {
    Result<Fitted> exchange = cut(call, chosen, longest, {.blocks = 1, .marked = true});
    if (exchange.ok()) return exchange;  // else the ranks find alike that its messages do not fit, and use flags
  }
  SliceRequest request{longest * element, chosen.choice.cut.slice_bytes, element,
                       chosen.grain,      setup_.workspace_capacity,     setup_.most_blocks,
                       chosen.lends_all};
  if (chosen.lends_all) request.slice_bytes = lent_slice_bytes(longest * element);
  if (setup_.here.config->slice_bytes != kAutomatic) request.slice_bytes = setup_.here.config->slice_bytes;
  DeviceSlice slice = first_slice(request);
  for (int tries = 0; tries < kTriesToFit; ++tries) {
    Result<Fitted> fitted = cut(call, chosen, slice.elements, {.blocks = slice.blocks});
    if (!fitted.ok()) {
      if (fitted.status().code() != Code::invalid_usage || slice.blocks == 1) return fitted.status();
      slice.blocks /= 2;  // their flags have no room
      continue;
    }
    if (fitted.value().largest <= setup_.workspace_capacity) return fitted;
    if (!shorten(slice, request, fitted.value().largest)) break;
  }
  return failure(Code::invalid_usage,
                 "%s over %d ranks as %s needs more than the %zu bytes of a workspace for its messages: choose another algorithm",
                 describe(call.collective, call.count, call.type, call.op, call.root).c_str(), setup_.here.ranks,
                 chosen.choice.algorithm->name.data(), setup_.workspace_capacity);
}

Result<DeviceShapes::Fitted> DeviceShapes::cut(const Call& call, const Chosen& chosen, std::uint64_t slice_elements,
                                               const DeviceCut& wanted) const {
  std::vector<BoundProgram> programs;
  Fitted fitted;
  fitted.cut = wanted;
  for (Rank rank = 0; rank < setup_.here.ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const Layout layout = layout_of(call, chosen, rank);
    fitted.cut.longest = std::max<std::uint64_t>(1, layout.longest());
    BindRequest request{&chosen.lowered[index], chosen.shape, chosen.in_place[index], &layout, call.type, call.op, 0, {}, {}};
    request.tuning.slice_elements = slice_elements;
    request.tuning.depth = chosen.depth;
    if (!chosen.lent.empty()) request.lent = chosen.lent[index];
    SETO_ASSIGN(programs.emplace_back(), bind_program(request));
  }
  fitted.cut.delays = delays_of(programs, *setup_.pairs, rounds_ahead(chosen.choice.cut, programs.front()));
  SETO_ASSIGN(const DeviceChannels channels, DeviceChannels::join(programs, fitted.cut, *setup_.pairs));
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    fitted.largest = std::max({fitted.largest, channels.workspace_size(rank), channels.staging_size(rank)});
  const auto own = static_cast<std::size_t>(setup_.rank);
  fitted.ends = channels.ends_of(own, setup_.workspaces, setup_.relay != nullptr ? setup_.relay->staging().address() : 0);
  if (setup_.relay != nullptr) {
    SETO_ASSIGN(fitted.relayed, RelayProgram::of(programs[own], fitted.cut, channels.relayed_of(own)));
    if (chosen.readers.number != 0) use_gpu_slots(chosen.readers, fitted);
  }
  fitted.own = std::move(programs[own]);
  if (fitted.own.slices >> kernels::kMarkSliceBits != 0)
    return failure(Code::invalid_argument, "count: %llu elements need more slices than a call can have: split the call",
                   static_cast<unsigned long long>(call.count));
  return fitted;
}

void DeviceShapes::use_gpu_slots(const Relay::Readers& readers, Fitted& fitted) const {
  for (RelayProgram::Channel& channel : fitted.relayed.channels)
    if (readers.ranks[channel.end.peer] && fitted.relayed.suits_gpu(channel))
      RelayProgram::put_in_gpu(channel, *setup_.relay->slots(), fitted.ends);
}

Status DeviceShapes::stage(const std::vector<std::byte>& image, const std::array<std::byte, 8>& scalar, DeviceShape& shape) {
  const std::size_t scalar_at = (image.size() + kCacheLine - 1) / kCacheLine * kCacheLine;
  shape.staged_size = scalar_at + scalar.size();
  SETO_ASSIGN(shape.program, arena_.allocate(shape.staged_size));
  SETO_ASSIGN(shape.staged, staging_.allocate(shape.staged_size));
  shape.scalar = shape.program + scalar_at;
  auto* const staged = reinterpret_cast<std::byte*>(shape.staged);
  std::memcpy(staged, image.data(), image.size());
  std::memcpy(staged + scalar_at, scalar.data(), scalar.size());
  return {};
}

void DeviceShapes::unstage(const DeviceShape& shape) {
  arena_.release(shape.program);
  staging_.release(shape.staged);
}

Rank DeviceShape::awaited(const kernels::StopReport& report) const {
  if (report.operand == kernels::kWaitsForDone) return report.step < done_peers.size() ? done_peers[report.step] : -1;
  kernels::DeviceProgram begin;
  std::memcpy(&begin, image.data(), sizeof begin);
  kernels::DeviceStep step;
  const std::size_t step_at = begin.steps + std::size_t{report.step} * sizeof step;
  if (step_at + sizeof step > image.size()) return -1;
  std::memcpy(&step, image.data() + step_at, sizeof step);
  kernels::DeviceOperand operand;
  const std::size_t operand_at = begin.operands + (std::size_t{step.first_operand} + report.operand) * sizeof operand;
  if (operand_at + sizeof operand > image.size()) return -1;
  std::memcpy(&operand, image.data() + operand_at, sizeof operand);
  return operand.end < end_peers.size() ? end_peers[operand.end] : -1;
}

std::string DeviceShape::wait_text(const kernels::StopReport& report) const {
  const std::string peer = "rank " + std::to_string(awaited(report));
  if (is_multicast) return "waits for " + peer + " in round " + std::to_string(report.slice) + " of " + plan;
  if (report.operand == kernels::kWaitsForDone && awaited(report) == rank)
    return "waits until the messages of its operation before are sent";
  if (report.operand == kernels::kWaitsForDone) return "waits for " + peer + " to end the operation before";
  return "waits for " + peer + " in step " + std::to_string(report.step) + ", slice " + std::to_string(report.slice) + " of " +
         plan;
}

}  // namespace seto
