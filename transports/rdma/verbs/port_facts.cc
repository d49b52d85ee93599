#include "transports/rdma/verbs/port_facts.h"

#include <arpa/inet.h>

#include <algorithm>

namespace seto::rdma {
namespace {

constexpr std::array<std::uint8_t, 12> kIpv4Prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool Gid::ipv4() const { return std::equal(kIpv4Prefix.begin(), kIpv4Prefix.end(), bytes.begin()); }

std::string to_text(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (gid.ipv4())
    inet_ntop(AF_INET, gid.bytes.data() + kIpv4Prefix.size(), text, sizeof text);
  else
    inet_ntop(AF_INET6, gid.bytes.data(), text, sizeof text);
  return text;
}

Gid gid_of(const std::string& text) {
  Gid gid;
  if (inet_pton(AF_INET6, text.c_str(), gid.bytes.data()) == 1) return gid;
  if (inet_pton(AF_INET, text.c_str(), gid.bytes.data() + kIpv4Prefix.size()) != 1) return {};
  std::copy(kIpv4Prefix.begin(), kIpv4Prefix.end(), gid.bytes.begin());
  return gid;
}

}  // namespace seto::rdma
