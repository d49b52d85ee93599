// multimem.ld_reduce, multimem.st and multimem.red: one instruction accesses memory of several GPUs. In the memory model, and for
// the race check, each place is an access of its own. The places come in an order that the seed chooses: in the real machine the
// switch has one that no manual states.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/software_gpu/address_space.h"
#include "tests/software_gpu/block.h"
#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/float_formats.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory_modifiers.h"
#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu {
namespace {

enum class Kind : std::uint8_t { load_reduce, store, reduce };
enum class Fold : std::uint8_t { add, min, max, conjunction, disjunction, exclusive };
constexpr std::array<std::string_view, 6> kFolds{"add", "min", "max", "and", "or", "xor"};
constexpr std::uint32_t kInSingle = 1;  // a flag: halves are accumulated in f32

// fold(accumulated, next), on the bits of one element.
using Compute = std::uint64_t (*)(std::uint64_t accumulated, std::uint64_t next, std::uint64_t unused);

template <class T, Fold kWhich>
std::uint64_t folded(std::uint64_t accumulated, std::uint64_t next, std::uint64_t /*unused*/) {
  if constexpr (kWhich == Fold::conjunction) return accumulated & next;
  if constexpr (kWhich == Fold::disjunction) return accumulated | next;
  if constexpr (kWhich == Fold::exclusive) return accumulated ^ next;
  if constexpr (kWhich == Fold::add && !std::is_floating_point_v<T>) return accumulated + next;
  const T one = value_of<T>(accumulated), other = value_of<T>(next);
  if constexpr (kWhich == Fold::add) {
    const T sum = one + other;
    if (std::isnan(static_cast<double>(sum))) return sizeof(T) == 4 ? 0x7FFFFFFFU : 0x7FFFFFFFFFFFFFFFU;  // of PTX
    return bits_of(sum);
  }
  return bits_of(kWhich == Fold::min ? std::min(one, other) : std::max(one, other));
}

// The bits of one half. A NaN is ignored by min and max, as by those of PTX without .NaN.
template <bool kBfloatFormat, Fold kWhich>
std::uint32_t folded_half(std::uint32_t accumulated, std::uint32_t next) {
  const FloatFormat& format = kBfloatFormat ? kBfloat : kHalf;
  const double one = decoded(accumulated, format), other = decoded(next, format);
  if constexpr (kWhich == Fold::add) return encoded(fused_for_rounding(one, 1, other), format, Rounding::nearest, false);
  if (std::isnan(one) || std::isnan(other))
    return std::isnan(one) && std::isnan(other) ? encoded(one, format, Rounding::nearest, false)
           : std::isnan(one)                    ? next
                                                : accumulated;
  const bool one_is_less = one < other || (one == other && std::signbit(one));
  return one_is_less == (kWhich == Fold::min) ? accumulated : next;
}

template <bool kBfloatFormat, std::uint32_t kPairs, Fold kWhich>
std::uint64_t folded_halves(std::uint64_t accumulated, std::uint64_t next, std::uint64_t /*unused*/) {
  std::uint64_t result = 0;
  for (std::uint32_t i = 0; i < 16 * kPairs; i += 16)
    result |= std::uint64_t{folded_half<kBfloatFormat, kWhich>(static_cast<std::uint32_t>(accumulated >> i) & 0xFFFFU,
                                                               static_cast<std::uint32_t>(next >> i) & 0xFFFFU)}
              << i;
  return result;
}

// Null: the manual does not allow it.
template <class T>
Compute integer_compute(Fold which) {
  constexpr std::array<Compute, 3> kComputes{&folded<T, Fold::add>, &folded<T, Fold::min>, &folded<T, Fold::max>};
  return which <= Fold::max ? kComputes[static_cast<std::size_t>(which)] : nullptr;
}
template <class T>
Compute bit_compute(Fold which) {
  constexpr std::array<Compute, 3> kComputes{&folded<T, Fold::conjunction>, &folded<T, Fold::disjunction>,
                                             &folded<T, Fold::exclusive>};
  return which > Fold::max ? kComputes[static_cast<std::size_t>(which) - 3] : nullptr;
}
template <bool kBfloatFormat, std::uint32_t kPairs>
Compute half_compute(Fold which) {
  constexpr std::array<Compute, 3> kComputes{&folded_halves<kBfloatFormat, kPairs, Fold::add>,
                                             &folded_halves<kBfloatFormat, kPairs, Fold::min>,
                                             &folded_halves<kBfloatFormat, kPairs, Fold::max>};
  return which <= Fold::max ? kComputes[static_cast<std::size_t>(which)] : nullptr;
}

Compute compute_for(Fold which, ScalarType type) {
  switch (type) {
    case ScalarType::b32:
      return bit_compute<std::uint32_t>(which);
    case ScalarType::b64:
      return bit_compute<std::uint64_t>(which);
    case ScalarType::u32:
      return integer_compute<std::uint32_t>(which);
    case ScalarType::u64:
      return integer_compute<std::uint64_t>(which);
    case ScalarType::s32:
      return integer_compute<std::int32_t>(which);
    case ScalarType::s64:
      return which == Fold::add ? nullptr : integer_compute<std::int64_t>(which);
    case ScalarType::f32:
      return which == Fold::add ? &folded<float, Fold::add> : nullptr;
    case ScalarType::f64:
      return which == Fold::add ? &folded<double, Fold::add> : nullptr;
    case ScalarType::f16:
      return half_compute<false, 1>(which);
    case ScalarType::f16x2:
      return half_compute<false, 2>(which);
    case ScalarType::bf16:
      return half_compute<true, 1>(which);
    case ScalarType::bf16x2:
      return half_compute<true, 2>(which);
    default:
      return nullptr;
  }
}

// The sum of the halves at bit `shift` of all values, accumulated in f32 and rounded once.
std::uint64_t summed_in_single(const std::vector<std::uint64_t>& values, std::uint32_t shift, const FloatFormat& format) {
  float sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(decoded(static_cast<std::uint32_t>(values[i] >> shift) & 0xFFFFU, format));
    sum = i == 0 ? value : sum + value;
  }
  return std::uint64_t{encoded(sum, format, Rounding::nearest, false)} << shift;
}

bool is_bfloat(ScalarType type) { return type == ScalarType::bf16 || type == ScalarType::bf16x2; }

std::uint64_t reduced(const Instruction& in, const std::vector<std::uint64_t>& values) {
  if ((in.flags & kInSingle) != 0) {
    std::uint64_t result = 0;
    for (std::uint32_t shift = 0; shift < 8 * size_of(in.type); shift += 16)
      result |= summed_in_single(values, shift, is_bfloat(in.type) ? kBfloat : kHalf);
    return result;
  }
  const Compute compute = compute_for(static_cast<Fold>(in.detail), in.type);
  std::uint64_t result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) result = compute(result, values[i], 0) & low_mask(size_of(in.type));
  return result;
}

// The places of the whole vector, in an order of the seed's.
std::vector<std::uint64_t> places_of(Thread& thread, const Instruction& in) {
  Machine& machine = thread.block.machine;
  const std::uint32_t bytes = size_of(in.type) * in.elements;
  const std::uint64_t address = thread.bits(in.base) + in.offset;
  if ((address & (bytes - 1)) != 0)
    throw Fault(FaultKind::misaligned,
                "an access of " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + " is not aligned");
  std::vector<std::uint64_t> places = machine.addresses().multicast_places(address, bytes, thread.block.place.gpu);
  for (std::size_t left = places.size(); left > 1; --left)
    std::swap(places[left - 1], places[machine.random().below(static_cast<std::uint32_t>(left))]);
  return places;
}

Location place_of(std::uint64_t place, const Instruction& in, std::uint32_t element) {
  return {Space::global, place + std::uint64_t{element} * size_of(in.type)};
}

void load_reduce(Thread& thread, const Instruction& in) {
  const std::vector<std::uint64_t> places = places_of(thread, in);
  for (std::uint32_t element = 0; element < in.elements; ++element) {
    std::vector<std::uint64_t> values;
    for (const std::uint64_t place : places)
      values.push_back(load_from(thread, in, place_of(place, in, element), size_of(in.type)).low);
    const std::uint64_t result = reduced(in, values);
    thread.set_bits(in.d[element], is_signed(in.type) ? sign_extended(result, size_of(in.type)) : result);
  }
}

void store(Thread& thread, const Instruction& in) {
  for (const std::uint64_t place : places_of(thread, in))
    for (std::uint32_t element = 0; element < in.elements; ++element)
      store_to(thread, in, place_of(place, in, element), {thread.bits(in.s[element]) & low_mask(size_of(in.type)), 0},
               size_of(in.type));
}

void reduce(Thread& thread, const Instruction& in) {
  for (const std::uint64_t place : places_of(thread, in))
    for (std::uint32_t element = 0; element < in.elements; ++element) {
      const AtomicUpdate update{.compute = compute_for(static_cast<Fold>(in.detail), in.type),
                                .first = thread.bits(in.s[element]) & low_mask(size_of(in.type))};
      static_cast<void>(update_at(thread, in, place_of(place, in, element), update));
    }
}

bool is_whole(const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type) * in.elements;
  if (!is_float(in.type) && !is_half(in.type)) return in.elements == 1 && (bytes == 4 || bytes == 8);
  return (bytes == 4 || bytes == 8 || bytes == 16) && (in.type != ScalarType::f64 || in.elements == 1);
}

// Without a word on the order, a load and a store are weak, and a reduction is relaxed at the scope of the system.
bool take_order(Modifiers& modifiers, Instruction& in, Kind kind) {
  const bool is_plain_reduction = kind == Kind::reduce && !modifiers.has("relaxed") && !modifiers.has("release");
  const bool says_weak = modifiers.has("weak");
  const bool has_scope = modifiers.has("cta") || modifiers.has("gpu") || modifiers.has("sys");
  const bool fits = take_memory_modifiers(modifiers, in);
  if (in.space != Space::global && in.space != Space::generic) return false;
  if (is_plain_reduction) {
    if (in.order != Order::weak || says_weak) return false;
    in.order = Order::relaxed;
    if (!has_scope) in.scope = Scope::system;
    return true;
  }
  const Order last = kind == Kind::load_reduce ? Order::acquire : Order::release;
  return fits && (in.order == Order::weak || in.order == Order::relaxed || in.order == last) &&
         (kind != Kind::reduce || in.order != Order::weak);
}

bool resolve_multimem(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 3> kNames{"ld_reduce", "st", "red"};
  const int name = modifiers.take_one_of(kNames);
  if (name < 0) return false;
  const auto kind = static_cast<Kind>(name);
  if (!take_order(modifiers, in, kind)) return false;
  constexpr std::array<std::string_view, 3> kVectors{"v2", "v4", "v8"};
  const int vector = modifiers.take_one_of(kVectors);
  in.elements = vector < 0 ? std::uint8_t{1} : static_cast<std::uint8_t>(2U << vector);
  const int fold = kind == Kind::store ? 0 : modifiers.take_one_of(kFolds);
  if (fold < 0 || !take_type(modifiers, in) || !is_whole(in)) return false;
  in.detail = static_cast<std::uint32_t>(fold);
  if (kind != Kind::store && compute_for(static_cast<Fold>(fold), in.type) == nullptr) return false;
  if (kind == Kind::reduce && is_half(in.type) && static_cast<Fold>(fold) != Fold::add) return false;
  if (modifiers.take("acc::f32")) {
    if (kind != Kind::load_reduce || !is_half(in.type) || static_cast<Fold>(fold) != Fold::add) return false;
    in.flags = kInSingle;
  }
  const std::uint8_t operands = kind == Kind::load_reduce ? in.destinations : in.sources;
  constexpr std::array<Handler, 3> kHandlers{&load_reduce, &store, &reduce};
  in.handler = operands == in.elements ? kHandlers[static_cast<std::size_t>(name)] : nullptr;
  return true;
}

constexpr std::array<OperationRow, 1> kRows{{{"multimem", &resolve_multimem}}};

}  // namespace

std::span<const OperationRow> multimem_operations() { return kRows; }

}  // namespace seto::software_gpu
