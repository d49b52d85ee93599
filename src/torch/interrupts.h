#pragma once

#include <cstdint>

namespace seto::torch_backend {

// So often a wait for other ranks looks for interrupts, in milliseconds.
constexpr std::uint32_t kLookMs = 100;

// Runs the signal handlers of the interpreter, if this is its main thread; throws what they raise, as Ctrl-C does.
void look_for_interrupts();

// By the module, once, before anything waits. Without it nothing is ever interrupted.
void look_for_interrupts_by(void (*function)());

}  // namespace seto::torch_backend
