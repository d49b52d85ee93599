#include "src/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace seto {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "seto: internal error: %s does not hold (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace seto
