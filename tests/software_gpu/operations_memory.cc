// Loads, stores and fences.
#include <array>

#include "tests/software_gpu/address_space.h"
#include "tests/software_gpu/block.h"
#include "tests/software_gpu/dispatch.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory_modifiers.h"

namespace seto::software_gpu {
namespace {

void set_loaded(Thread& thread, const Instruction& in, std::uint32_t element, Bits128 value) {
  if (in.type == ScalarType::b128)
    thread.set_wide(in.d[element], value);
  else
    thread.set_bits(in.d[element], is_signed(in.type) ? sign_extended(value.low, size_of(in.type)) : value.low);
}

void load(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type);
  const Location location = checked_location(thread, in, bytes * in.elements, false);
  for (std::uint32_t i = 0; i < in.elements; ++i)
    set_loaded(thread, in, i, load_from(thread, in, {location.space, location.address + i * bytes}, bytes));
}

// One element at each step, in an order that the seed chooses: between two of them other threads may store.
void load_torn(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type);
  const Location location = checked_location(thread, in, bytes * in.elements, false);
  Machine& machine = thread.block.machine;
  if (location.space != Space::global || !machine.memory().is_weak()) {
    load(thread, in);
    return;
  }
  std::uint32_t element = machine.random().below(in.elements);
  while (((thread.vector_done >> element) & 1) != 0) element = (element + 1) % in.elements;
  // The address may be one of the destinations, so elements wait beside the registers until all are there.
  thread.vector_parts[element] = load_from(thread, in, {location.space, location.address + element * bytes}, bytes);
  thread.vector_done |= 1U << element;
  if (thread.vector_done != (1U << in.elements) - 1) {
    --thread.next;
    return;
  }
  thread.vector_done = 0;
  for (std::uint32_t i = 0; i < in.elements; ++i) set_loaded(thread, in, i, thread.vector_parts[i]);
}

void store(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type);
  const Location location = checked_location(thread, in, bytes * in.elements, true);
  const std::uint32_t first = in.elements > 1 ? thread.block.machine.random().below(in.elements) : 0;
  for (std::uint32_t i = 0; i < in.elements; ++i) {
    const std::uint32_t element = (first + i) % in.elements;
    const Bits128 value =
        in.type == ScalarType::b128 ? thread.wide(in.s[element]) : Bits128{thread.bits(in.s[element]) & low_mask(bytes), 0};
    store_to(thread, in, {location.space, location.address + element * bytes}, value, bytes);
  }
}

void load_parameter(Thread& thread, const Instruction& in) {
  const std::uint32_t bytes = size_of(in.type);
  const Location location = checked_location(thread, in, bytes * in.elements, false);
  for (std::uint32_t i = 0; i < in.elements; ++i) {
    Bits128 value;
    std::memcpy(&value, thread.params.data() + location.address + i * bytes, bytes);
    set_loaded(thread, in, i, value);
  }
}

bool take_elements(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 3> kNames{"v2", "v4", "v8"};
  const int which = modifiers.take_one_of(kNames);
  in.elements = which < 0 ? std::uint8_t{1} : static_cast<std::uint8_t>(2U << which);
  return take_type(modifiers, in);
}

bool resolve_load(Modifiers& modifiers, Instruction& in) {
  if (!take_memory_modifiers(modifiers, in) || !take_elements(modifiers, in) || in.destinations != in.elements) return false;
  in.handler = in.space == Space::param ? &load_parameter : in.elements > 1 ? &load_torn : &load;
  return in.order != Order::release && in.order != Order::acquire_release;
}

bool resolve_store(Modifiers& modifiers, Instruction& in) {
  if (!take_memory_modifiers(modifiers, in) || !take_elements(modifiers, in) || in.sources < in.elements) return false;
  in.handler = &store;
  return in.space != Space::constant && (in.order <= Order::relaxed || in.order == Order::release) &&
         in.order != Order::read_only;
}

void fence(Thread& thread, const Instruction& in) {
  if (thread.block.machine.races().enabled()) RaceCheck::fence(thread.order, in.scope);
  thread.block.machine.memory().fence(thread.memory, in.order, in.scope);
}

bool take_scope(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 4> kNames{"cta", "gpu", "gl", "sys"};
  constexpr std::array<Scope, 4> kScopes{Scope::block, Scope::gpu, Scope::gpu, Scope::system};
  const int which = modifiers.take_one_of(kNames);
  if (which >= 0) in.scope = kScopes[static_cast<std::size_t>(which)];
  return which >= 0;
}

void do_nothing(Thread& /*thread*/, const Instruction& /*in*/) {}

// membar is fence.sc of the same scope. Addresses that stand for the same memory are one location here, so fence.proxy.alias has
// no effect.
bool resolve_fence(Modifiers& modifiers, Instruction& in) {
  if (modifiers.take("proxy")) {
    in.handler = modifiers.take("alias") ? &do_nothing : nullptr;
    return true;
  }
  const bool old_form = modifiers.name() == "membar";
  in.order = old_form || modifiers.take("sc") ? Order::sequential : Order::acquire_release;
  modifiers.take("acq_rel");
  in.handler = take_scope(modifiers, in) ? &fence : nullptr;
  return true;
}

bool resolve_prefetch(Modifiers& modifiers, Instruction& in) {
  if (!take_memory_modifiers(modifiers, in)) return false;
  modifiers.take("L1");
  modifiers.take("L2");
  in.handler = &do_nothing;
  return true;
}

constexpr std::array<OperationRow, 6> kRows{{
    {"ld", &resolve_load},
    {"ldu", &resolve_load},
    {"st", &resolve_store},
    {"fence", &resolve_fence},
    {"membar", &resolve_fence},
    {"prefetch", &resolve_prefetch},
}};

}  // namespace

std::span<const OperationRow> memory_operations() { return kRows; }

}  // namespace seto::software_gpu
