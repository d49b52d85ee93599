#include "src/net/token.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "src/base/check.h"

namespace seto {

// The kernel fills requests of up to 256 bytes completely; only a signal during boot interrupts them.
void fill_random(void* bytes, std::size_t size) {
  ssize_t got = 0;
  do {
    got = getrandom(bytes, size, 0);
  } while (got < 0 && errno == EINTR);
  SETO_CHECK(got == static_cast<ssize_t>(size));
}

Token random_token() {
  Token token{};
  fill_random(token.data(), token.size());
  return token;
}

bool equal(const Token& left, const Token& right) {
  unsigned difference = 0;
  for (std::size_t index = 0; index < left.size(); ++index) difference |= static_cast<unsigned>(left[index] ^ right[index]);
  return difference == 0;
}

std::string random_socket_name() {
  std::uint64_t number = 0;
  fill_random(&number, sizeof number);
  char name[32];
  std::snprintf(name, sizeof name, "seto-%016" PRIx64, number);
  return name;
}

}  // namespace seto
