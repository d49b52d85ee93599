#include "tests/lab/packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace seto::lab {
namespace {

using Bytes = std::vector<std::byte>;

void put(Bytes& bytes, std::size_t index, std::uint32_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) bytes[index + i] = static_cast<std::byte>(value >> (8 * (width - 1 - i)));
}

std::uint32_t get(const Bytes& bytes, std::size_t index, std::size_t width) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[index + i]);
  return value;
}

struct SuperPacket {
  OffloadHeader offload;
  Bytes bytes;
  std::size_t ip_size = 0;
};

// A packet as a kernel passes it to a TUN device: the TCP checksum is the sum of the pseudo-header.
SuperPacket make_packet(bool ip6, std::size_t payload, std::uint16_t segment_size, std::mt19937_64& random) {
  constexpr std::size_t kOptions = 12;
  SuperPacket packet;
  packet.ip_size = ip6 ? 40 : 20;
  const std::size_t headers = packet.ip_size + 20 + kOptions;
  packet.bytes.resize(headers + payload);
  for (std::byte& byte : packet.bytes) byte = static_cast<std::byte>(random());
  Bytes& bytes = packet.bytes;
  if (ip6) {
    put(bytes, 0, 0x60000000, 4);
    put(bytes, 4, static_cast<std::uint32_t>(20 + kOptions + payload), 2);
    put(bytes, 6, 6 << 8 | 64, 2);
  } else {
    put(bytes, 0, 0x4500, 2);
    put(bytes, 2, static_cast<std::uint32_t>(bytes.size()), 2);
    put(bytes, 4, 0xfffe, 2);  // the identification wraps within the packet
    put(bytes, 6, 0x4000, 2);
    put(bytes, 8, 64 << 8 | 6, 2);
    put(bytes, 10, 0, 2);
    put(bytes, 10, static_cast<std::uint16_t>(~folded(word_sum(Packet(bytes).first(20), 0))), 2);
  }
  put(bytes, packet.ip_size + 4, 0xffffff00, 4);              // the sequence number wraps too
  put(bytes, packet.ip_size + 12, 8 << 12 | 0x80 | 0x19, 2);  // CWR, ACK, PSH, FIN
  const Packet addresses = Packet(bytes).subspan(ip6 ? 8 : 12, ip6 ? 32 : 8);
  const auto tcp_size = static_cast<std::uint32_t>(bytes.size() - packet.ip_size);
  put(bytes, packet.ip_size + 16, folded(word_sum(addresses, 6 + tcp_size)), 2);
  packet.offload = {.flags = OffloadHeader::kNeedsChecksum,
                    .kind = ip6 ? OffloadHeader::kTcp6 : OffloadHeader::kTcp4,
                    .header_size = static_cast<std::uint16_t>(headers),
                    .segment_size = segment_size,
                    .checksum_start = static_cast<std::uint16_t>(packet.ip_size),
                    .checksum_offset = 16};
  return packet;
}

// The packets that leave a network card: segments with complete checksums. Written independently of the code under test.
std::vector<Bytes> segmented(const SuperPacket& packet) {
  const std::size_t header = packet.ip_size + 32;
  const std::size_t step = packet.offload.kind == OffloadHeader::kWhole ? packet.bytes.size() : packet.offload.segment_size;
  std::vector<Bytes> segments;
  for (std::size_t begin = 0; begin + header < packet.bytes.size(); begin += step) {
    const std::size_t size = std::min(step, packet.bytes.size() - header - begin);
    const auto at = packet.bytes.begin() + static_cast<std::ptrdiff_t>(header + begin);
    Bytes segment(packet.bytes.begin(), packet.bytes.begin() + static_cast<std::ptrdiff_t>(header));
    segment.insert(segment.end(), at, at + static_cast<std::ptrdiff_t>(size));
    const bool first = begin == 0, last = begin + size + header == packet.bytes.size();
    put(segment, packet.ip_size + 4, get(segment, packet.ip_size + 4, 4) + static_cast<std::uint32_t>(begin), 4);
    const std::uint32_t flags = get(segment, packet.ip_size + 13, 1);
    put(segment, packet.ip_size + 13, flags & ~(first ? 0U : 0x80U) & ~(last ? 0U : 0x09U), 1);
    if (packet.ip_size == 40) {
      put(segment, 4, static_cast<std::uint32_t>(segment.size() - 40), 2);
    } else {
      put(segment, 2, static_cast<std::uint32_t>(segment.size()), 2);
      put(segment, 4, get(segment, 4, 2) + static_cast<std::uint32_t>(segments.size()), 2);
      put(segment, 10, 0, 2);
      put(segment, 10, static_cast<std::uint16_t>(~folded(word_sum(Packet(segment).first(20), 0))), 2);
    }
    put(segment, packet.ip_size + 16, 0, 2);
    const auto tcp = Packet(segment).subspan(packet.ip_size);
    const auto addresses = Packet(segment).subspan(packet.ip_size == 40 ? 8 : 12, packet.ip_size == 40 ? 32 : 8);
    const auto sum = word_sum(tcp, word_sum(addresses, 6 + static_cast<std::uint32_t>(tcp.size())));
    put(segment, packet.ip_size + 16, static_cast<std::uint16_t>(~folded(sum)), 2);
    segments.push_back(std::move(segment));
  }
  return segments;
}

SuperPacket assembled(const SuperPacket& original, const Fragment& fragment) {
  SuperPacket packet{.offload = fragment.offload, .bytes = {}, .ip_size = original.ip_size};
  packet.bytes.assign(fragment.header.begin(), fragment.header.begin() + fragment.header_size);
  const auto at = original.bytes.begin() + fragment.offset;
  packet.bytes.insert(packet.bytes.end(), at, at + fragment.size);
  return packet;
}

// A kernel completes the checksum over the present value of the field, which must be the sum of this packet's own pseudo-header.
void expect_completable(const SuperPacket& packet) {
  const bool ip6 = packet.ip_size == 40;
  const auto addresses = Packet(packet.bytes).subspan(ip6 ? 8 : 12, ip6 ? 32 : 8);
  const auto tcp_size = static_cast<std::uint32_t>(packet.bytes.size() - packet.ip_size);
  EXPECT_EQ(get(packet.bytes, packet.ip_size + 16, 2), folded(word_sum(addresses, 6 + tcp_size)));
  EXPECT_EQ(packet.offload.flags, OffloadHeader::kNeedsChecksum);
}

TEST(Packets, FragmentsHaveTheSegmentsOfTheWholePacket) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int turn = 0; turn < 400; ++turn) {
    const bool ip6 = turn % 2 == 1;
    const auto segment_size = static_cast<std::uint16_t>(500 + random() % 1000);
    const auto packet = make_packet(ip6, 1 + random() % 20'000, segment_size, random);
    const auto expected = segmented(packet);
    const auto shape = shape_of(packet.offload, packet.bytes);
    ASSERT_TRUE(shape);
    ASSERT_EQ(shape->segments.count, expected.size());
    for (std::uint32_t i = 0; i < expected.size(); ++i) EXPECT_EQ(shape->segments.size_of(i), expected[i].size());

    const auto first = static_cast<std::uint32_t>(random() % expected.size());
    const auto count = static_cast<std::uint32_t>(1 + random() % (expected.size() - first));
    const Piece piece{.first = first, .count = count, .due = 0};
    const auto part = assembled(packet, fragment_of(packet.offload, packet.bytes, *shape, piece));
    expect_completable(part);
    EXPECT_EQ(part.offload.kind == OffloadHeader::kWhole, count == 1 && expected.size() > 1);
    const auto segments = segmented(part);
    ASSERT_EQ(segments.size(), count);
    for (std::uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(segments[i], expected[first + i]) << "segment " << first + i << (ip6 ? ", IPv6" : ", IPv4");
  }
}

TEST(Packets, AWholePacketPassesUnchanged) {
  std::mt19937_64 random(1);
  const auto packet = make_packet(false, 5000, 1448, random);
  const auto shape = shape_of(packet.offload, packet.bytes);
  ASSERT_TRUE(shape);
  const auto fragment = fragment_of(packet.offload, packet.bytes, *shape, {.first = 0, .count = 4, .due = 0});
  EXPECT_EQ(fragment.header_size, 0U);
  EXPECT_EQ(assembled(packet, fragment).bytes, packet.bytes);
}

TEST(Packets, AnOrdinaryPacketIsOneSegment) {
  Bytes packet(1500);
  packet[0] = std::byte{0x45};
  const auto shape = shape_of({}, packet);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->segments.count, 1U);
  EXPECT_EQ(shape->segments.last_size, 1500U);
}

TEST(Packets, HeadersThatContradictTheLengthAreRejected) {
  std::mt19937_64 random(1);
  const auto packet = make_packet(false, 5000, 1448, random);
  const OffloadHeader tcp4 = packet.offload;
  EXPECT_FALSE(shape_of(tcp4, {}));
  EXPECT_FALSE(shape_of(tcp4, Packet(packet.bytes).first(52))) << "no payload";
  EXPECT_FALSE(shape_of(tcp4, Packet(packet.bytes).first(30))) << "half a TCP header";
  Bytes short_header = packet.bytes;
  short_header[32] = std::byte{0x10};  // a TCP header of 4 bytes
  EXPECT_FALSE(shape_of(tcp4, short_header));
  OffloadHeader no_size = tcp4;
  no_size.segment_size = 0;
  EXPECT_FALSE(shape_of(no_size, packet.bytes));
  Bytes other = packet.bytes;
  other[0] = std::byte{0x15};
  EXPECT_FALSE(shape_of(tcp4, other)) << "no IP version";
}

TEST(Packets, TheDestinationNamesTheSite) {
  Bytes packet(40);
  packet[0] = std::byte{0x45};
  put(packet, 16, 0x0a4d0701, 4);
  EXPECT_EQ(destination_site(packet), 7U);
  put(packet, 16, 0x0a4c0701, 4);
  EXPECT_EQ(destination_site(packet), std::nullopt);
  packet[0] = std::byte{0x60};
  put(packet, 24, 0xfd770000, 4);
  put(packet, 28, 3, 4);
  EXPECT_EQ(destination_site(packet), 3U);
  put(packet, 24, 0xff020000, 4);
  EXPECT_EQ(destination_site(packet), std::nullopt) << "multicast is for no site";
  EXPECT_EQ(destination_site(Packet(packet).first(20)), std::nullopt);
  EXPECT_EQ(destination_site({}), std::nullopt);
}

TEST(Destination, EachPathHasANetworkOfItsOwn) {
  std::vector<std::byte> packet(40);
  packet[0] = std::byte{0x45};
  packet[16] = std::byte{10};
  packet[18] = std::byte{3};
  for (std::size_t second = 70; second < 90; ++second) {
    packet[17] = static_cast<std::byte>(second);
    EXPECT_EQ(destination_site(packet).has_value(), second >= 77 && second < 77 + kMostPaths) << second;
  }
  packet[0] = std::byte{0x60};
  packet[24] = std::byte{0xfd};
  packet[25] = std::byte{0x78};
  packet[31] = std::byte{2};
  EXPECT_EQ(destination_site(packet), 2U);
  packet[25] = std::byte{0x76};
  EXPECT_FALSE(destination_site(packet).has_value());
}

TEST(CodePoint, IsReadFromBothVersions) {
  std::vector<std::byte> packet(40);
  packet[0] = std::byte{0x45};
  packet[1] = std::byte{0xbb};
  EXPECT_EQ(code_point(packet), 46);
  packet[0] = std::byte{0x6b};
  packet[1] = std::byte{0xb0};
  EXPECT_EQ(code_point(packet), 46);
  packet[0] = std::byte{0x00};
  EXPECT_EQ(code_point(packet), 0);
  EXPECT_EQ(code_point({}), 0);
}

TEST(Packets, OnlyTheFirstPacketOfAConnectionBeginsIt) {
  std::mt19937_64 random(testing::chosen_seed());
  for (const bool ip6 : {false, true}) {
    SuperPacket packet = make_packet(ip6, 10, 0, random);
    const auto begins = [&](std::uint32_t flags) {
      put(packet.bytes, packet.ip_size + 13, flags, 1);
      return begins_connection(packet.bytes);
    };
    EXPECT_TRUE(begins(0x02));   // SYN
    EXPECT_FALSE(begins(0x12));  // its answer
    EXPECT_FALSE(begins(0x10));
    begins(0x02);
    packet.bytes[ip6 ? 6 : 9] = std::byte{17};
    EXPECT_FALSE(begins_connection(packet.bytes)) << "UDP";
    for (std::size_t size = 0; size < packet.ip_size + 20; ++size)
      EXPECT_FALSE(begins_connection(Packet(packet.bytes).first(size)));
  }
}

}  // namespace
}  // namespace seto::lab
