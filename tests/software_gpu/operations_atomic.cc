// atom and red.
#include <algorithm>
#include <array>

#include "tests/software_gpu/address_space.h"
#include "tests/software_gpu/block.h"
#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/float_formats.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory_modifiers.h"

namespace seto::software_gpu {
namespace {

using Compute = std::uint64_t (*)(std::uint64_t old, std::uint64_t first, std::uint64_t second);

enum class Update : std::uint8_t { add, min, max, inc, dec, exch, cas, conjunction, disjunction, exclusive };
constexpr std::array<std::string_view, 10> kNames{"add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor"};

template <class T, Update kWhich>
std::uint64_t updated(std::uint64_t old_bits, std::uint64_t first_bits, std::uint64_t second) {
  const T old = value_of<T>(old_bits);
  const T first = value_of<T>(first_bits);
  if constexpr (kWhich == Update::add && std::is_floating_point_v<T>)
    return bits_of(static_cast<T>(old + first));
  else if constexpr (kWhich == Update::add)
    return old_bits + first_bits;
  else if constexpr (kWhich == Update::min)
    return bits_of(std::min(old, first));
  else if constexpr (kWhich == Update::max)
    return bits_of(std::max(old, first));
  else if constexpr (kWhich == Update::inc)
    return old >= first ? 0 : old_bits + 1;
  else if constexpr (kWhich == Update::dec)
    return old == 0 || old > first ? first_bits : old_bits - 1;
  else if constexpr (kWhich == Update::exch)
    return first_bits;
  else if constexpr (kWhich == Update::cas)
    return old == first ? second : old_bits;
  else if constexpr (kWhich == Update::conjunction)
    return old_bits & first_bits;
  else if constexpr (kWhich == Update::disjunction)
    return old_bits | first_bits;
  else
    return old_bits ^ first_bits;
}

template <bool kBfloatFormat, std::uint32_t kPairs>
std::uint64_t added_halves(std::uint64_t old, std::uint64_t first, std::uint64_t /*second*/) {
  const FloatFormat& format = kBfloatFormat ? kBfloat : kHalf;
  std::uint64_t result = 0;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    const double a = decoded(static_cast<std::uint32_t>(old >> (16 * i)) & 0xFFFFU, format);
    const double b = decoded(static_cast<std::uint32_t>(first >> (16 * i)) & 0xFFFFU, format);
    result |= std::uint64_t{encoded(fused_for_rounding(a, 1, b), format, Rounding::nearest, false)} << (16 * i);
  }
  return result;
}

template <class T>
Compute integer_compute(Update which) {
  constexpr std::array<Compute, 10> kComputes{
      &updated<T, Update::add>,         &updated<T, Update::min>,      &updated<T, Update::max>, &updated<T, Update::inc>,
      &updated<T, Update::dec>,         &updated<T, Update::exch>,     &updated<T, Update::cas>, &updated<T, Update::conjunction>,
      &updated<T, Update::disjunction>, &updated<T, Update::exclusive>};
  return kComputes[static_cast<std::size_t>(which)];
}

Compute compute_for(Update which, ScalarType type) {
  switch (type) {
    case ScalarType::u32:
    case ScalarType::b32:
      return integer_compute<std::uint32_t>(which);
    case ScalarType::u64:
    case ScalarType::b64:
      return integer_compute<std::uint64_t>(which);
    case ScalarType::s32:
      return integer_compute<std::int32_t>(which);
    case ScalarType::s64:
      return integer_compute<std::int64_t>(which);
    case ScalarType::b16:
      return which == Update::cas ? &updated<std::uint16_t, Update::cas> : nullptr;
    default:
      break;
  }
  if (which != Update::add) return nullptr;
  switch (type) {
    case ScalarType::f32:
      return &updated<float, Update::add>;
    case ScalarType::f64:
      return &updated<double, Update::add>;
    case ScalarType::f16:
      return &added_halves<false, 1>;
    case ScalarType::f16x2:
      return &added_halves<false, 2>;
    case ScalarType::bf16:
      return &added_halves<true, 1>;
    case ScalarType::bf16x2:
      return &added_halves<true, 2>;
    default:
      return nullptr;
  }
}

// detail: the Update.
void update_memory(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type);
  const Location location = checked_location(thread, in, bytes, true);
  if (location.space != Space::global && location.space != Space::shared)
    throw Fault(FaultKind::misuse, "atomics work on global and shared memory only");
  const std::uint64_t mask = low_mask(bytes);
  const AtomicUpdate update{.compute = compute_for(static_cast<Update>(in.detail), in.type),
                            .first = thread.bits(in.s[0]) & mask,
                            .second = in.sources > 1 ? thread.bits(in.s[1]) & mask : 0,
                            .compares = static_cast<Update>(in.detail) == Update::cas};
  const std::uint64_t old = update_at(thread, in, location, update);
  if (in.destinations > 0) thread.set_bits(in.d[0], is_signed(in.type) ? sign_extended(old, bytes) : old);
  thread.end_turn();  // the thread may be polling
}

// Without order and scope, atomics are relaxed at GPU scope.
bool resolve_update(Modifiers& modifiers, Instruction& in) {
  const bool has_scope = modifiers.has("cta") || modifiers.has("gpu") || modifiers.has("sys");
  const bool has_order =
      modifiers.has("relaxed") || modifiers.has("acquire") || modifiers.has("release") || modifiers.has("acq_rel");
  modifiers.take("noftz");
  const bool taken = take_memory_modifiers(modifiers, in);
  if ((has_order && !taken) || in.order == Order::read_only) return false;
  if (!has_order) in.order = Order::relaxed;
  if (!has_scope) in.scope = Scope::gpu;
  const int which = modifiers.take_one_of(kNames);
  if (which < 0 || !take_type(modifiers, in) || compute_for(static_cast<Update>(which), in.type) == nullptr) return false;
  in.detail = static_cast<std::uint32_t>(which);
  const std::uint32_t sources = static_cast<Update>(which) == Update::cas ? 2 : 1;
  in.handler = in.sources >= sources ? &update_memory : nullptr;
  return true;
}

constexpr std::array<OperationRow, 2> kRows{{{"atom", &resolve_update}, {"red", &resolve_update}}};

}  // namespace

std::span<const OperationRow> atomic_operations() { return kRows; }

}  // namespace seto::software_gpu
