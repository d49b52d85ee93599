#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/control/network/listen_address.h"

// Either the address that was read is equal after encoding and decoding, or reading fails with a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto address = seto::decode_listen_address({reinterpret_cast<const char*>(data), size});
  if (!address.ok()) {
    if (address.status().text().empty()) std::abort();
    return 0;
  }
  const auto again = seto::decode_listen_address(seto::encode(address.value()));
  if (!again.ok() || again.value().process != address.value().process || again.value().candidates != address.value().candidates)
    std::abort();
  return 0;
}
