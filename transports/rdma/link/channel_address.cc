#include "transports/rdma/link/channel_address.h"

#include <cstring>

#include "transports/rdma/link/ring.h"

namespace seto::rdma {
namespace {

constexpr std::uint16_t kVersion = 1;
constexpr std::uint32_t kMost24Bits = 0xff'ffff;

template <class Value>
void put(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Value>
void take(std::string_view& bytes, Value& value) {
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
}

}  // namespace

std::string ChannelAddress::encoded() const {
  std::string bytes;
  put(bytes, kVersion);
  put(bytes, queue_pair);
  put(bytes, sequence);
  put(bytes, ring);
  put(bytes, ring_key);
  put(bytes, ring_size);
  put(bytes, records);
  put(bytes, mtu);
  put(bytes, lid);
  put(bytes, gid.bytes);
  return bytes;
}

Result<ChannelAddress> ChannelAddress::decode(std::string_view bytes) {
  ChannelAddress address;
  if (bytes.size() != ChannelAddress().encoded().size())
    return failure(Code::remote_error,
                   "the peer's description of its RDMA queue pair has %zu bytes: is its library of another version?",
                   bytes.size());
  std::uint16_t version = 0;
  take(bytes, version);
  if (version != kVersion)
    return failure(Code::remote_error, "the peer describes its RDMA queue pair in version %u, this library in version %u",
                   version, kVersion);
  take(bytes, address.queue_pair);
  take(bytes, address.sequence);
  take(bytes, address.ring);
  take(bytes, address.ring_key);
  take(bytes, address.ring_size);
  take(bytes, address.records);
  take(bytes, address.mtu);
  take(bytes, address.lid);
  take(bytes, address.gid.bytes);
  if (address.queue_pair > kMost24Bits || address.sequence > kMost24Bits)
    return failure(Code::remote_error, "the peer states queue pair %u and packet number %u, which have 24 bits",
                   address.queue_pair, address.sequence);
  if (address.ring_size < kSmallestRing || address.ring_size > kLargestRing || address.ring_size % kUnit != 0 ||
      address.ring % kUnit != 0)
    return failure(Code::remote_error, "the peer states a ring of %llu bytes at 0x%llx",
                   static_cast<unsigned long long>(address.ring_size), static_cast<unsigned long long>(address.ring));
  if (address.records == 0 || address.records > kMostRecords)
    return failure(Code::remote_error, "the peer states %u records", address.records);
  if (address.mtu < 256 || address.mtu > 4'096) return failure(Code::remote_error, "the peer states an MTU of %u", address.mtu);
  return address;
}

}  // namespace seto::rdma
