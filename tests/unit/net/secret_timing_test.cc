#include <gtest/gtest.h>

#include "src/base/clock.h"
#include "src/net/secret.h"

namespace seto {
namespace {

TEST(SecretTiming, EachPassphraseIsComputedOnce) {
  const Secret first = Secret::of_passphrase("often").value();
  const std::uint64_t start = monotonic_ns();
  for (int again = 0; again < 1'000; ++again) ASSERT_TRUE(equal(Secret::of_passphrase("often").value(), first));
  EXPECT_LT(monotonic_ns() - start, 5'000'000'000U) << "one takes 40 ms";
}

}  // namespace
}  // namespace seto
