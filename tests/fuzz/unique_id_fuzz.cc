#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/bootstrap/unique_id.h"
#include "src/net/address.h"
#include "src/net/peer_listener.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void of_id(std::string_view bytes) {
  seto::UniqueIdBytes id_bytes{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), id_bytes.size()), id_bytes.begin());
  const auto id = seto::decode(id_bytes);
  if (!id.ok()) return check(!id.status().text().empty());
  const auto again = seto::decode(seto::encode(id.value()));
  check(again.ok() && again.value().address.socket_name == id.value().address.socket_name);
  check(again.value().address.addresses == id.value().address.addresses);
}

}  // namespace

// Ids, and users' texts of root addresses.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  of_id(text);
  static_cast<void>(seto::parse_unique_id(text));
  static_cast<void>(seto::parse_ports(text));
  static_cast<void>(seto::InterfaceFilter::parse(text));
  const auto address = seto::parse_address(text);
  if (address.ok()) {
    const auto again = seto::parse_address(seto::to_text(address.value()));
    check(again.ok() && again.value() == address.value());
  }
  return 0;
}
