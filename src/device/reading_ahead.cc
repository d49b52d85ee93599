#include "src/device/reading_ahead.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace seto {
namespace {

#if defined(__x86_64__)
constexpr unsigned kZen5 = 0x1a;

bool of_machine() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if (ebx != signature_AMD_ebx || ecx != signature_AMD_ecx || edx != signature_AMD_edx) return false;
  (void)__get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
  return family >= kZen5;
}
#else
bool of_machine() { return false; }
#endif

}  // namespace

bool gains_by_reading_ahead() {
  static const bool gains = of_machine();
  return gains;
}

}  // namespace seto
