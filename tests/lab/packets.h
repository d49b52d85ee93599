#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tests/lab/segments.h"

namespace seto::lab {

// The header that a TUN device with IFF_VNET_HDR puts before each packet. Declared here because <linux/virtio_net.h> is not valid
// C++ on every system (a field named class).
struct OffloadHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;
  static constexpr std::uint8_t kWhole = 0, kTcp4 = 1, kTcp6 = 4;

  std::uint8_t flags = 0;
  std::uint8_t kind = kWhole;
  std::uint16_t header_size = 0;
  std::uint16_t segment_size = 0;  // payload of one segment
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

using Packet = std::span<const std::byte>;

// Hosts can be joined by so many paths, each with a network of its own.
inline constexpr std::size_t kMostPaths = 8;

// The destination site of a packet: 10.77.SITE.x or fd77:0:0:SITE::x on the first path, 10.78 and fd78 on the next. None: it is
// for no site.
[[nodiscard]] std::optional<std::size_t> destination_site(Packet packet);

// The DSCP of a packet, 0 to 63; 0 of what is no IP.
[[nodiscard]] std::uint8_t code_point(Packet packet);

// The packet asks for a TCP connection: it has SYN, and no ACK.
[[nodiscard]] bool begins_connection(Packet packet);

// The division of a packet into segments.
struct PacketShape {
  Segments segments;
  std::uint32_t ip_header_size = 0;
  std::uint32_t header_size = 0;   // IP and TCP; 0: indivisible
  std::uint32_t segment_size = 0;  // payload
};

// Returns none for headers that contradict each other or the length.
[[nodiscard]] std::optional<PacketShape> shape_of(const OffloadHeader& offload, Packet packet);

// Some segments of a packet, as a packet of its own: `header`, then `size` bytes of the original from `offset` on. Its TCP
// checksum covers only the pseudo-header, as kNeedsChecksum requires; the receiving kernel completes it.
struct Fragment {
  OffloadHeader offload;
  std::array<std::byte, 120> header{};  // the longest IP and TCP headers
  std::uint32_t header_size = 0;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

[[nodiscard]] Fragment fragment_of(const OffloadHeader& offload, Packet packet, const PacketShape& shape, const Piece& piece);

// Ones' complement sum of 16-bit words in network order, not folded.
[[nodiscard]] std::uint32_t word_sum(Packet bytes, std::uint32_t start);
[[nodiscard]] std::uint16_t folded(std::uint32_t sum);

}  // namespace seto::lab
