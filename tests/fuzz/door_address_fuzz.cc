#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/control/network/listen_address.h"

// What is read comes back from its own encoding; nothing else may happen but a failure with a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto address = seto::decode_door_address({reinterpret_cast<const char*>(data), size});
  if (!address.ok()) {
    if (address.status().text().empty()) std::abort();
    return 0;
  }
  const auto again = seto::decode_door_address(seto::encode(address.value()));
  if (!again.ok() || again.value().process != address.value().process || again.value().candidates != address.value().candidates)
    std::abort();
  return 0;
}
