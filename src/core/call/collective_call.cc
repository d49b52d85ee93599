#include "src/core/call/collective_call.h"

#include <algorithm>

#include "src/codec/codec.h"
#include "src/core/call/error_feedback.h"
#include "src/core/call/ids.h"
#include "src/engine/coding.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

std::uint64_t total(const Call& call, int ranks) {
  if (call.counts.empty()) return call.count * (has_parts(call.collective) ? static_cast<std::uint64_t>(ranks) : 1);
  std::uint64_t sum = 0;
  for (const std::uint64_t count : call.counts) sum += count;
  return sum;
}

std::uint64_t own_count(const Call& call, Rank rank) {
  return call.counts.empty() ? call.count : call.counts[static_cast<std::size_t>(rank)];
}

std::uint64_t offset_of(const Call& call, Rank part) {
  if (!call.displacements.empty()) return call.displacements[static_cast<std::size_t>(part)];
  if (call.counts.empty()) return static_cast<std::uint64_t>(part) * call.count;
  std::uint64_t sum = 0;
  for (Rank before = 0; before < part; ++before) sum += call.counts[static_cast<std::size_t>(before)];
  return sum;
}

// The end of the part that ends last; parts may be in any order.
std::uint64_t end_of_parts(const Call& call) {
  std::uint64_t end = 0;
  for (std::size_t part = 0; part < call.counts.size(); ++part)
    if (call.counts[part] > 0) end = std::max(end, call.displacements[part] + call.counts[part]);
  return end;
}

Status check_sizes(const Call& call, int ranks) {
  const std::uint64_t limit = kMostBytes / size_of(call.type) / static_cast<std::uint64_t>(ranks);
  if (call.count > limit)
    return failure(Code::invalid_argument, "count: %llu elements of %s on %d ranks exceed the address space",
                   static_cast<unsigned long long>(call.count), name_of(call.type).data(), ranks);
  for (std::size_t r = 0; r < call.counts.size(); ++r)
    if (call.counts[r] > limit ||
        (!call.displacements.empty() && call.displacements[r] > limit * static_cast<std::uint64_t>(ranks)))
      return failure(Code::invalid_argument, "counts: entry %zu exceeds the address space", r);
  return {};
}

Status check_buffer(const Call& call, const void* buffer, std::uint64_t bytes, const char* name) {
  if (bytes == 0) return {};
  if (buffer == nullptr)
    return failure(Code::invalid_argument, "%s: null, but %llu bytes are needed", name, static_cast<unsigned long long>(bytes));
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  if (address % size_of(call.type) != 0)
    return failure(Code::invalid_argument, "%s: not aligned to %zu bytes (%s at %p)", name, size_of(call.type),
                   name_of(call.type).data(), buffer);
  if (address + bytes < address) return failure(Code::invalid_argument, "%s: runs past the end of memory", name);
  return {};
}

// The address of the input in an in-place call.
const std::byte* in_place_input(const Call& call, Rank rank) {
  const auto* output = static_cast<const std::byte*>(call.output);
  const std::uint64_t shift = offset_of(call, rank) * size_of(call.type);
  switch (call.collective) {
    case Collective::all_gather:
      return output + shift;
    case Collective::gather:
      return rank == call.root ? output + shift : nullptr;
    case Collective::reduce_scatter:
      return output - shift;
    case Collective::scatter:
      return rank == call.root ? output - shift : nullptr;
    default:
      return output;
  }
}

// Parts may have gaps between them, and the input may lie in such a gap.
bool overlaps_a_part(const Call& call, std::uint64_t in) {
  const std::uint64_t element = size_of(call.type);
  const auto* const input = static_cast<const std::byte*>(call.input);
  const auto* const output = static_cast<const std::byte*>(call.output);
  for (std::size_t part = 0; part < call.counts.size(); ++part) {
    const std::byte* const begin = output + call.displacements[part] * element;
    if (input < begin + call.counts[part] * element && begin < input + in) return true;
  }
  return false;
}

Status check_overlap(const Call& call, Rank rank, int ranks) {
  const std::uint64_t in = input_bytes(call, rank, ranks);
  const std::uint64_t out = output_bytes(call, rank, ranks);
  if (in == 0 || out == 0) return {};
  const auto* input = static_cast<const std::byte*>(call.input);
  const auto* output = static_cast<const std::byte*>(call.output);
  const bool overlaps = input < output + out && output < input + in;
  if (!overlaps || (!call.displacements.empty() && !overlaps_a_part(call, in))) return {};
  if (call.collective != Collective::all_to_all && input == in_place_input(call, rank)) return {};
  return failure(Code::invalid_argument, "sendbuff, recvbuff overlap (%s allows only its in-place form)",
                 name_of(call.collective).data());
}

// A call that names a codec itself expects lossy values. If the codec cannot be used for this call, the call is rejected.
Status check_codec(const Call& call) {
  const std::uint8_t number = call.codec == 0 ? std::uint8_t{0} : codec_number(call.codec);
  if (number == 0 || takes_codec(number, call.collective, call.type, call.op)) return {};
  return failure(Code::invalid_argument, "codec: the call requests %s, which accepts only sums of wider floats; this is %s",
                 codec_name(number).data(), describe(call.collective, call.count, call.type, call.op, call.root).c_str());
}

}  // namespace

bool has_parts(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter ||
         collective == Collective::all_to_all || collective == Collective::gather || collective == Collective::scatter;
}

bool is_rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

std::uint64_t input_bytes(const Call& call, Rank rank, int ranks) {
  const std::uint64_t element = size_of(call.type);
  switch (call.collective) {
    case Collective::barrier:
      return 0;
    case Collective::all_reduce:
    case Collective::reduce:
      return call.count * element;
    case Collective::broadcast:
      return rank == call.root ? call.count * element : 0;
    case Collective::all_gather:
    case Collective::gather:
      return own_count(call, rank) * element;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return total(call, ranks) * element;
    case Collective::scatter:
      return rank == call.root ? total(call, ranks) * element : 0;
  }
  return 0;
}

std::uint64_t output_bytes(const Call& call, Rank rank, int ranks) {
  const std::uint64_t element = size_of(call.type);
  switch (call.collective) {
    case Collective::barrier:
      return 0;
    case Collective::all_reduce:
    case Collective::broadcast:
      return call.count * element;
    case Collective::reduce:
      return rank == call.root ? call.count * element : 0;
    case Collective::all_gather:
      return call.displacements.empty() ? total(call, ranks) * element : end_of_parts(call) * element;
    case Collective::gather:
      return rank == call.root ? total(call, ranks) * element : 0;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return own_count(call, rank) * element;
    case Collective::all_to_all:
      return total(call, ranks) * element;
  }
  return 0;
}

Status check(const Call& call, Rank rank, int ranks) {
  if (!call.wrong.ok()) return call.wrong;
  if (static_cast<int>(call.type) >= kDataTypeCount)
    return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", static_cast<int>(call.type));
  if (static_cast<int>(call.op) >= kReduceOpCount)
    return failure(Code::invalid_argument, "op: %d is not a setoRedOp_t value", static_cast<int>(call.op));
  if (is_bitwise(call.op) && !is_integer(call.type))
    return failure(Code::invalid_argument, "op: %s takes integers, not %s", name_of(call.op).data(), name_of(call.type).data());
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= ranks))
    return failure(Code::invalid_argument, "root: %d is not one of the ranks 0 to %d", call.root, ranks - 1);
  SETO_TRY(check_sizes(call, ranks));
  SETO_TRY(check_buffer(call, call.input, input_bytes(call, rank, ranks), "sendbuff"));
  SETO_TRY(check_buffer(call, call.output, output_bytes(call, rank, ranks), "recvbuff"));
  SETO_TRY(check_codec(call));
  if (call.feedback != nullptr) SETO_TRY(call.feedback->check(call, input_bytes(call, rank, ranks) / size_of(call.type)));
  return check_overlap(call, rank, ranks);
}

InPlace in_place(const Call& call, Rank rank, int ranks) {
  if (input_bytes(call, rank, ranks) == 0 || output_bytes(call, rank, ranks) == 0 || call.collective == Collective::all_to_all)
    return InPlace::no;
  return call.input == in_place_input(call, rank) ? InPlace::yes : InPlace::no;
}

std::size_t scalar_size(DataType type) {
  if (static_cast<int>(type) >= kDataTypeCount) return 0;
  return is_integer(type) ? size_of(type) : std::max(sizeof(float), size_of(type));
}

std::string describe(Collective collective, std::uint64_t count, DataType type, ReduceOp op, Rank root) {
  std::string text(name_of(collective));
  if (collective == Collective::barrier) return text;
  text += " of " + std::to_string(count) + " " + std::string(name_of(type));
  if (reduces(collective)) text += ", " + std::string(name_of(op));
  if (is_rooted(collective)) text += ", root " + std::to_string(root);
  return text;
}

bool takes_codec(std::uint8_t number, Collective collective, DataType type, ReduceOp op) {
  if (number == 0 || !sums(op) || !reduces(collective) || collective == Collective::barrier) return false;
  return encodes(codec_of(number), type);
}

RecordedCall recorded(const Call& call, const BoundAs& bound) {
  RecordedCall::Parts parts;
  parts.collective = call.collective;
  parts.type = call.type;
  parts.op = call.op;
  parts.count = call.count;
  parts.bytes = bound.bytes;
  parts.algorithm = bound.algorithm;
  parts.codec = bound.codec;
  parts.digest = bound.digest;
  if (is_rooted(call.collective)) parts.root = call.root;
  return RecordedCall::of(parts);
}

}  // namespace seto
