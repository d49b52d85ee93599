#include "src/engine/relay/relay_program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "src/engine/coding.h"
#include "transports/byte_pipe.h"

namespace seto {
namespace {

// The step that sends or receives the messages of a stream.
const BoundStep* step_of(const BoundProgram& program, std::size_t stream) {
  for (const BoundStep& step : program.steps) {
    for (const BoundSource& source : program.sources_of(step))
      if (source.space == Space::channel && source.stream == stream) return &step;
    for (const BoundTarget& target : program.targets_of(step))
      if (target.space == Space::channel && target.stream == stream) return &step;
  }
  return nullptr;
}

// Sender, group or receiver, port: as in DeviceChannels.
using Address = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t>;

}  // namespace

std::vector<std::uint32_t> delays_of(std::span<const BoundProgram> programs, const RelayedPairs& relayed, std::uint32_t rounds) {
  std::uint32_t stages = 1;
  for (const BoundProgram& program : programs)
    for (const BoundStep& step : program.steps) stages = std::max(stages, step.stage + 1);
  if (rounds <= 1 || stages == 1) return {};
  std::vector<std::uint32_t> after(stages, 1);  // rounds between a stage and the next
  std::map<Address, std::uint32_t> sent;        // stage
  for (const BoundProgram& program : programs)
    for (const BoundStep& step : program.steps)
      for (const BoundTarget& target : program.targets_of(step)) {
        if (target.space != Space::channel) continue;
        const BoundStream& stream = program.streams[target.stream];
        for (const std::uint32_t receiver : stream.receivers) {
          sent[{stream.address.sender, stream.address.group, stream.address.port, receiver}] = step.stage;
          if (relayed.has(static_cast<std::size_t>(program.rank), receiver)) after[step.stage] = rounds;
        }
      }
  for (const BoundProgram& program : programs)
    for (const BoundStep& step : program.steps)
      for (const BoundSource& source : program.sources_of(step)) {
        if (source.space != Space::channel) continue;
        const StreamAddress& from = program.streams[source.stream].address;
        const auto found = sent.find({from.sender, from.group, from.port, static_cast<std::uint32_t>(program.rank)});
        if (found == sent.end() || found->second >= step.stage) return {};
      }
  std::vector<std::uint32_t> delays(stages, 0);
  for (std::uint32_t stage = 1; stage < stages; ++stage) delays[stage] = delays[stage - 1] + after[stage - 1];
  return delays;
}

Result<RelayProgram> RelayProgram::of(const BoundProgram& program, const DeviceCut& cut, std::vector<RelayedChannel> channels) {
  SETO_ASSIGN(const DeviceGeometry geometry, DeviceGeometry::of(program, cut));
  RelayProgram made;
  made.rank = program.rank;
  made.blocks = cut.blocks;
  made.slices = program.slices;
  made.slice_elements = program.slice_elements;
  made.part_elements = geometry.part_elements;
  made.element_size = program.element_size;
  made.codec = program.codec;
  for (RelayedChannel& end : channels) {
    const BoundStep* const step = step_of(program, end.stream);
    if (step == nullptr) return failure(Code::internal, "rank %d: no step uses stream %zu", program.rank, end.stream);
    Channel channel{end, {}, program.streams[end.stream].coded, 0};
    const auto first = program.lengths.begin() + step->first_piece;
    channel.lengths.assign(first, first + step->pieces);
    channel.piece_stride = channel.coded ? geometry.coded_piece_stride : geometry.piece_stride;
    made.channels.push_back(std::move(channel));
  }
  return made;
}

// As BlockSteps::elements_of.
std::size_t RelayProgram::size_of_part(const Channel& channel, std::size_t piece, std::uint64_t slice,
                                       std::uint32_t block) const {
  const std::uint64_t end = std::min(channel.lengths[piece], (slice + 1) * slice_elements);
  const std::uint64_t first = slice * slice_elements + block * part_elements;
  if (first >= end) return 0;
  const std::uint64_t count = std::min(end - first, part_elements);
  return channel.coded ? encoded_size(codec_of(codec), count) : count * element_size;
}

// Calls visit(place in the staging memory, place in the message, size) for each piece of each block that is not empty.
template <class Visit>
void RelayProgram::visit_parts(const Channel& channel, std::uint64_t slice, const Visit& visit) const {
  std::size_t in_message = 0;
  const std::uint64_t slot = channel.end.slots + slice % channel.end.depth * channel.end.slot_size;
  for (std::uint32_t block = 0; block < blocks; ++block)
    for (std::size_t piece = 0; piece < channel.lengths.size(); ++piece) {
      const std::size_t size = size_of_part(channel, piece, slice, block);
      if (size == 0) continue;
      visit(slot + block * channel.end.block_stride + piece * channel.piece_stride, in_message, size);
      in_message += size;
    }
}

std::size_t RelayProgram::size_of(const Channel& channel, std::uint64_t slice) const {
  std::size_t all = 0;
  visit_parts(channel, slice, [&](std::uint64_t, std::size_t, std::size_t size) { all += size; });
  return all;
}

void RelayProgram::find_parts(const Channel& channel, std::uint64_t slice, std::vector<SlotCopy::Part>& parts) const {
  parts.clear();
  visit_parts(channel, slice, [&](std::uint64_t staged, std::size_t, std::size_t size) {
    if (!parts.empty() && parts.back().place + parts.back().size == staged)
      parts.back().size += size;
    else
      parts.push_back({staged, size});
  });
}

bool RelayProgram::suits_gpu(const Channel& channel) const {
  std::vector<SlotCopy::Part> parts;
  find_parts(channel, 0, parts);
  return channel.end.sends && !parts.empty() &&
         std::all_of(parts.begin(), parts.end(), [](const SlotCopy::Part& part) { return part.size >= BytePipe::kLongPart; });
}

void RelayProgram::put_in_gpu(Channel& channel, const GpuSlots& slots, DeviceEnds& ends) {
  channel.in_gpu = true;
  ends.streams[channel.end.stream][channel.end.end].slots =
      reinterpret_cast<kernels::Address>(slots.memory()) + channel.end.slots;
}

void RelayProgram::gather(const Channel& channel, std::uint64_t slice, const std::byte* staging, std::byte* message) const {
  visit_parts(channel, slice, [&](std::uint64_t staged, std::size_t in_message, std::size_t size) {
    std::memcpy(message + in_message, staging + staged, size);
  });
}

void RelayProgram::scatter(const Channel& channel, std::uint64_t slice, const std::byte* message, std::byte* staging) const {
  visit_parts(channel, slice, [&](std::uint64_t staged, std::size_t in_message, std::size_t size) {
    std::memcpy(staging + staged, message + in_message, size);
  });
}

}  // namespace seto
