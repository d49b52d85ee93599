#pragma once

#include <cstddef>
#include <vector>

#include "transports/named_memory.h"
#include "transports/resume/payload_retention.h"
#include "transports/tcp/link/link_users.h"

namespace seto::support {

// A buffer of a caller, with a name.
struct NamedBuffer {
  explicit NamedBuffer(std::size_t size) : bytes(size), name(bytes.data(), size) {}

  std::vector<std::byte> bytes;
  tcp::Unwritten unwritten{0};
  resume::Lender lender;
  const OwnName name;
};

}  // namespace seto::support
