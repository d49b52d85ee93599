#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "transports/rdma/verbs/port_facts.h"

namespace seto::rdma {

// One end of a channel, as the other end learns it over the control plane before they connect.
struct ChannelAddress {
  std::uint32_t queue_pair = 0;
  std::uint32_t sequence = 0;  // the first packet number that it sends
  std::uint64_t ring = 0;      // address of the memory that the other end writes
  std::uint32_t ring_key = 0;
  std::uint64_t ring_size = 0;  // bytes
  std::uint32_t records = 0;    // that it accepts at once
  std::uint32_t mtu = 0;
  std::uint16_t lid = 0;
  Gid gid;

  [[nodiscard]] std::string encoded() const;
  // The bytes come from the peer: a failure says what is wrong with them.
  static Result<ChannelAddress> decode(std::string_view bytes);
  friend bool operator==(const ChannelAddress&, const ChannelAddress&) = default;
};

// Bounds of what a peer may state.
inline constexpr std::uint64_t kSmallestRing = std::uint64_t{4} << 10;
inline constexpr std::uint64_t kLargestRing = std::uint64_t{64} << 20;
inline constexpr std::uint32_t kMostRecords = 4'096;

}  // namespace seto::rdma
