#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/plan/text.h"

// Either the plan that was read is equal after writing and reading, or reading fails with a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = seto::plan_from_text({reinterpret_cast<const char*>(data), size});
  if (!plan.ok()) {
    if (plan.status().text().empty()) std::abort();
    return 0;
  }
  const auto again = seto::plan_from_text(seto::to_text(plan.value()));
  if (!again.ok() || !(again.value().programs == plan.value().programs) || !(again.value().shape == plan.value().shape))
    std::abort();
  return 0;
}
