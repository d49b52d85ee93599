#pragma once

#include <cstdint>

namespace seto::torch_backend {

// The interval in milliseconds at which a wait for other ranks checks for interrupts.
constexpr std::uint32_t kLookMs = 100;

// Runs the interpreter's signal handlers if this is its main thread. Throws what they raise, for example after Ctrl-C.
void look_for_interrupts();

// The module calls this once before any wait. Without it no wait is interrupted.
void look_for_interrupts_by(void (*function)());

}  // namespace seto::torch_backend
