#include "src/control/channel/control_frames.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "src/control/network/job_keys.h"
#include "src/control/network/listen_address.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

TEST(WireFrames, AreReadBackForEveryCut) {
  std::mt19937_64 random(testing::chosen_seed());
  std::string bytes;
  std::vector<std::string> frames;
  for (int count = 0; count < 200; ++count) {
    const std::string load(random() % (kFrameLimit - kFrameHeadSize + 1), static_cast<char>('a' + count % 26));
    const auto kind = static_cast<ControlFrameKind>(1 + random() % 10);
    frames.push_back(encode({kind, static_cast<std::uint32_t>(random()), random(), static_cast<std::uint32_t>(random()), load}));
    bytes += frames.back();
  }
  ControlFrameReader reader;
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 5000, bytes.size() - at);
    ASSERT_TRUE(reader
                    .feed(std::string_view(bytes).substr(at, size),
                          [&](const ControlFrame& frame) {
                            ASSERT_LT(next, frames.size());
                            EXPECT_EQ(encode(frame), frames[next++]);
                          })
                    .ok());
    at += size;
  }
  EXPECT_EQ(next, frames.size());
}

TEST(WireFrames, InvalidFramesAreRejectedAtTheirHeader) {
  const auto refused = [](std::string bytes) {
    ControlFrameReader reader;
    return !reader.feed(bytes, [](const ControlFrame&) { FAIL(); }).ok();
  };
  std::string head = encode({ControlFrameKind::ping});
  head[0] = static_cast<char>(static_cast<int>(ControlFrameKind::resumed) + 1);  // the last kind
  EXPECT_TRUE(refused(head));
  head[0] = 0;
  EXPECT_TRUE(refused(head));
  head = encode({ControlFrameKind::message, 1, 2, 3});
  head[3] = 0x10;  // 4096 bytes after the header
  EXPECT_TRUE(refused(head));
  head = encode({ControlFrameKind::ping});
  head[20] = 1;
  EXPECT_TRUE(refused(head));
}

TEST(ListenAddress, IsReadBackFromItsBytes) {
  ListenAddress address;
  address.process.fill(7);
  address.library = "1.2.3";
  address.candidates = {parse_address("10.0.0.1:4000").value(), parse_address("[fe80::1]:4000").value()};
  const auto again = decode_listen_address(encode(address));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(again.value().process, address.process);
  EXPECT_EQ(again.value().library, address.library);
  EXPECT_EQ(again.value().candidates, address.candidates);
}

TEST(ListenAddress, MalformedBytesAreRejected) {
  ListenAddress address;
  address.library = "1.2.3";
  address.candidates = {parse_address("10.0.0.1:4000").value()};
  const std::string bytes = encode(address);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_listen_address(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(decode_listen_address(bytes + "x").ok());
  address.candidates.clear();
  EXPECT_FALSE(decode_listen_address(encode(address)).ok());
  address.candidates.assign(100, parse_address("10.0.0.1:4000").value());
  EXPECT_EQ(decode_listen_address(encode(address)).value().candidates.size(), kListenAddressLimit);
}

TEST(JobKeys, AKeyExistsAsLongAsItIsHeld) {
  std::vector<Secret> came;
  JobKeys ring([&](const Secret& key) { came.push_back(key); });
  const Secret key = Secret::of_text("key");
  AnswererHandshake hello{Token{}};
  const std::string bytes = CallerHandshake(key, {}).take_out();
  ASSERT_TRUE(hello.feed(std::string_view(bytes).substr(0, kPreambleSize)).ok());
  ASSERT_TRUE(hello.feed(std::string_view(bytes).substr(kPreambleSize)).ok());
  EXPECT_TRUE(ring.empty());
  Admission other = ring.admit(Secret::of_text("another"));
  EXPECT_FALSE(ring.find(hello).has_value());
  came.clear();
  Admission first = ring.admit(key);
  Admission second = ring.admit(key);
  EXPECT_EQ(came.size(), 1U);
  ASSERT_TRUE(ring.find(hello).has_value());
  EXPECT_TRUE(equal(*ring.find(hello), key));
  first.end();
  EXPECT_TRUE(ring.find(hello).has_value());
  second = Admission();
  EXPECT_FALSE(ring.find(hello).has_value());
  other.end();
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace seto
