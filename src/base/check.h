#pragma once

namespace seto {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace seto

// Checks for a programming error of the library itself. It is active in every build; it prints the condition and aborts. It is
// never used for errors that a user or a peer can cause.
#define SETO_CHECK(condition)                                               \
  (__builtin_expect(static_cast<bool>(condition), 1) ? static_cast<void>(0) \
                                                     : ::seto::check_failed(#condition, __FILE__, __LINE__))
