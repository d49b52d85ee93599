#include "tests/lab/packets.h"

#include <algorithm>
#include <cstring>

namespace seto::lab {
namespace {

constexpr std::uint32_t kIp4Header = 20, kIp6Header = 40, kTcpHeader = 20;
constexpr std::uint32_t kTcp = 6;
constexpr std::byte kLastOnly{0x01 | 0x08};  // FIN, PSH: the last segment carries them
constexpr std::byte kFirstOnly{0x80};        // CWR: the first one
constexpr std::uint8_t kEcn = 0x80;          // a flag in OffloadHeader::kind

std::uint32_t octet(Packet bytes, std::size_t index) { return std::to_integer<std::uint32_t>(bytes[index]); }
std::uint32_t word(Packet bytes, std::size_t index) { return octet(bytes, index) << 8 | octet(bytes, index + 1); }

void put_word(std::span<std::byte> bytes, std::size_t index, std::uint32_t value) {
  bytes[index] = static_cast<std::byte>(value >> 8);
  bytes[index + 1] = static_cast<std::byte>(value);
}

std::uint32_t version_of(Packet packet) { return packet.empty() ? 0 : octet(packet, 0) >> 4; }

// Sets length, identification and checksum of the IP header of a fragment. Returns the sum of the TCP pseudo-header.
std::uint32_t finish_ip(std::span<std::byte> header, std::uint32_t ip_size, std::uint32_t first, std::uint32_t payload) {
  const auto total = static_cast<std::uint32_t>(header.size()) + payload;
  const std::uint32_t tcp_size = total - ip_size;
  if (version_of(header) == 6) {
    put_word(header, 4, tcp_size);
    return word_sum(header.subspan(8, 32), kTcp + tcp_size);
  }
  put_word(header, 2, total);
  put_word(header, 4, word(header, 4) + first);
  put_word(header, 10, 0);
  put_word(header, 10, static_cast<std::uint16_t>(~folded(word_sum(header.first(ip_size), 0))));
  return word_sum(header.subspan(12, 8), kTcp + tcp_size);
}

}  // namespace

std::uint32_t word_sum(Packet bytes, std::uint32_t start) {
  for (std::size_t index = 0; index + 1 < bytes.size(); index += 2) start += word(bytes, index);
  return bytes.size() % 2 == 0 ? start : start + (octet(bytes, bytes.size() - 1) << 8);
}

std::uint16_t folded(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::optional<std::size_t> destination_site(Packet packet) {
  const auto is_path = [&](std::size_t at, std::uint32_t first) {
    return word(packet, at) >= first && word(packet, at) < first + kMostPaths;
  };
  if (version_of(packet) == 4 && packet.size() >= kIp4Header && is_path(16, 10 << 8 | 77)) return octet(packet, 18);
  if (version_of(packet) == 6 && packet.size() >= kIp6Header && is_path(24, 0xfd77)) return word(packet, 30);
  return std::nullopt;
}

// It is the upper six bits of the second byte of IPv4; in IPv6 four bits of the version stand before it.
std::uint8_t code_point(Packet packet) {
  if (version_of(packet) == 4 && packet.size() >= kIp4Header) return static_cast<std::uint8_t>(octet(packet, 1) >> 2);
  if (version_of(packet) == 6 && packet.size() >= kIp6Header) return static_cast<std::uint8_t>(word(packet, 0) >> 6 & 63);
  return 0;
}

bool begins_connection(Packet packet) {
  constexpr std::uint32_t kSyn = 0x02, kAck = 0x10;
  const std::uint32_t version = version_of(packet);
  if ((version != 4 || packet.size() < kIp4Header) && (version != 6 || packet.size() < kIp6Header)) return false;
  const std::uint32_t ip_size = version == 4 ? (octet(packet, 0) & 15) * 4 : kIp6Header;
  if (octet(packet, version == 4 ? 9 : 6) != kTcp || packet.size() < ip_size + kTcpHeader) return false;
  return (octet(packet, ip_size + 13) & (kSyn | kAck)) == kSyn;
}

std::optional<PacketShape> shape_of(const OffloadHeader& offload, Packet packet) {
  const auto size = static_cast<std::uint32_t>(packet.size());
  const std::uint32_t version = version_of(packet);
  if (version != 4 && version != 6) return std::nullopt;
  PacketShape shape;
  shape.segments = {.count = 1, .size = size, .last_size = size};
  const auto kind = static_cast<std::uint8_t>(offload.kind & ~kEcn);
  if (kind != OffloadHeader::kTcp4 && kind != OffloadHeader::kTcp6) return shape;

  shape.ip_header_size = version == 4 ? (octet(packet, 0) & 15) * 4 : kIp6Header;
  if (shape.ip_header_size < kIp4Header || size < shape.ip_header_size + kTcpHeader) return std::nullopt;
  shape.header_size = shape.ip_header_size + (octet(packet, shape.ip_header_size + 12) >> 4) * 4;
  if (shape.header_size < shape.ip_header_size + kTcpHeader || size <= shape.header_size) return std::nullopt;
  shape.segment_size = offload.segment_size;
  if (shape.segment_size == 0) return std::nullopt;
  const std::uint32_t payload = size - shape.header_size;
  const std::uint32_t count = (payload + shape.segment_size - 1) / shape.segment_size;
  shape.segments = {.count = count,
                    .size = shape.header_size + shape.segment_size,
                    .last_size = shape.header_size + payload - (count - 1) * shape.segment_size};
  return shape;
}

Fragment fragment_of(const OffloadHeader& offload, Packet packet, const PacketShape& shape, const Piece& piece) {
  Fragment fragment;
  fragment.offload = offload;
  if (piece.count == shape.segments.count) {
    fragment.size = static_cast<std::uint32_t>(packet.size());
    return fragment;
  }
  const auto payload = static_cast<std::uint32_t>(packet.size()) - shape.header_size;
  const std::uint32_t begin = piece.first * shape.segment_size;
  const std::uint32_t end = std::min(payload, (piece.first + piece.count) * shape.segment_size);
  fragment.header_size = shape.header_size;
  fragment.offset = shape.header_size + begin;
  fragment.size = end - begin;
  const auto header = std::span(fragment.header).first(shape.header_size);
  std::copy_n(packet.begin(), shape.header_size, header.begin());

  const auto tcp = header.subspan(shape.ip_header_size);
  const std::uint32_t sequence = (word(tcp, 4) << 16 | word(tcp, 6)) + begin;
  put_word(tcp, 4, sequence >> 16);
  put_word(tcp, 6, sequence);
  if (piece.first + piece.count != shape.segments.count) tcp[13] &= ~kLastOnly;
  if (piece.first != 0) tcp[13] &= ~kFirstOnly;
  put_word(tcp, 16, folded(finish_ip(header, shape.ip_header_size, piece.first, fragment.size)));
  if (piece.count == 1) {
    fragment.offload.kind = OffloadHeader::kWhole;
    fragment.offload.segment_size = 0;
  }
  return fragment;
}

}  // namespace seto::lab
