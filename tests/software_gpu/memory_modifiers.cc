#include "tests/software_gpu/memory_modifiers.h"

#include <array>

namespace seto::software_gpu {
namespace {

void take_space(Modifiers& modifiers, Instruction& in) {
  constexpr std::array<std::string_view, 8> kNames{"global", "const",       "shared",       "local",
                                                   "param",  "shared::cta", "param::entry", "param::func"};
  constexpr std::array<Space, 8> kSpaces{Space::global, Space::constant, Space::shared, Space::local,
                                         Space::param,  Space::shared,   Space::param,  Space::param};
  const int which = modifiers.take_one_of(kNames);
  in.space = which < 0 ? Space::generic : kSpaces[static_cast<std::size_t>(which)];
}

bool take_scope(Modifiers& modifiers, Instruction& in) {
  if (modifiers.take("cta"))
    in.scope = Scope::block;
  else if (modifiers.take("gpu"))
    in.scope = Scope::gpu;
  else if (modifiers.take("sys"))
    in.scope = Scope::system;
  else
    return false;
  return true;
}

}  // namespace

bool take_memory_modifiers(Modifiers& modifiers, Instruction& in) {
  modifiers.drop_cache_hints();
  modifiers.take("L2::cache_hint");  // its operand follows the others, where nothing reads it
  take_space(modifiers, in);
  const bool has_scope = take_scope(modifiers, in);
  constexpr std::array<std::string_view, 7> kNames{"weak", "nc", "relaxed", "acquire", "release", "acq_rel", "volatile"};
  constexpr std::array<Order, 7> kOrders{Order::weak,    Order::read_only,       Order::relaxed, Order::acquire,
                                         Order::release, Order::acquire_release, Order::relaxed};
  modifiers.take("mmio");
  const int which = modifiers.take_one_of(kNames);
  in.order = which < 0 ? Order::weak : kOrders[static_cast<std::size_t>(which)];
  if (which == 6) {
    in.scope = Scope::system;  // volatile means relaxed at system scope
    return !has_scope;
  }
  return has_scope == (in.order >= Order::relaxed);
}

}  // namespace seto::software_gpu
