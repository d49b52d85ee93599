// The frames of the rendezvous: what is written is read back, and nothing else is read.

#include "src/bootstrap/rendezvous/frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace seto {
namespace {

using Outcome = FrameReader::Outcome;

constexpr std::size_t kLimit = 4096;

RendezvousAddress address_of_test() {
  return {"seto-0123456789abcdef", {parse_address("10.1.2.3:4711").value(), parse_address("[2001:db8::7]:4711").value()}};
}

Frame only_frame(const std::string& bytes) {
  FrameReader reader(kLimit);
  reader.append(bytes);
  Frame frame;
  EXPECT_EQ(reader.next(frame), Outcome::frame);
  Frame none;
  EXPECT_EQ(reader.next(none), Outcome::more) << "nothing is left";
  return frame;
}

std::string body_of(FrameKind kind, const std::string& bytes) {
  const Frame frame = only_frame(bytes);
  EXPECT_EQ(frame.kind, kind);
  return frame.body;
}

std::string random_text(std::mt19937_64& random, std::size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

TEST(FrameReader, CutsAStreamThatArrivesInAnyPieces) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> bodies(1 + random() % 8);
    std::string stream;
    for (std::string& body : bodies) stream += encode_frame(FrameKind::contribution, body = random_text(random, 300));
    FrameReader reader(kLimit);
    std::vector<std::string> read;
    while (!stream.empty()) {
      const std::size_t piece = 1 + random() % std::min<std::size_t>(stream.size(), 64);
      reader.append(stream.substr(0, piece));
      stream.erase(0, piece);
      Frame frame;
      Outcome outcome = Outcome::more;
      while ((outcome = reader.next(frame)) == Outcome::frame) read.push_back(frame.body);
      ASSERT_EQ(outcome, Outcome::more);
    }
    EXPECT_EQ(read, bodies);
  }
}

TEST(FrameReader, RefusesALongFrameByItsHeaderAlone) {
  const std::string whole = encode_frame(FrameKind::result, std::string(kLimit + 1, 'r'));
  Frame frame;
  FrameReader reader(kLimit);
  reader.append(whole.substr(0, kFrameHeaderSize - 1));
  EXPECT_EQ(reader.next(frame), Outcome::more) << "the size is not known yet";
  reader.append(whole.substr(kFrameHeaderSize - 1, 1));
  EXPECT_EQ(reader.next(frame), Outcome::garbage);
  FrameReader larger(kLimit);
  larger.set_body_limit(kLimit + 1);
  larger.append(whole);
  EXPECT_EQ(larger.next(frame), Outcome::frame);
}

TEST(FrameReader, RefusesASizeThatOverflows) {
  std::string bytes = encode_frame(FrameKind::hello, "");
  std::memset(bytes.data() + 8, 0xff, 8);
  FrameReader reader(kLimit);
  reader.append(bytes);
  Frame frame;
  EXPECT_EQ(reader.next(frame), Outcome::garbage);
}

TEST(FrameReader, RefusesAnyOtherMagic) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    std::string bytes = encode_frame(FrameKind::ready, "");
    bytes[byte] = static_cast<char>(bytes[byte] ^ 0x20);
    FrameReader reader(kLimit);
    reader.append(bytes);
    Frame frame;
    EXPECT_EQ(reader.next(frame), Outcome::garbage) << byte;
  }
}

TEST(Frames, HelloCarriesAllThatARankSays) {
  const Hello hello{7, 3, 9, 250, address_of_test()};
  const std::string body = body_of(FrameKind::hello, encode_hello(hello));
  EXPECT_EQ(body.size(), kHelloBodySize);
  const Hello back = decode_hello(body).value();
  EXPECT_EQ(back.number, 7U);
  EXPECT_EQ(back.rank, 3);
  EXPECT_EQ(back.size, 9);
  EXPECT_EQ(back.remaining_ms, 250U);
  EXPECT_EQ(back.address.socket_name, hello.address.socket_name);
  EXPECT_EQ(back.address.addresses, hello.address.addresses);
}

TEST(Frames, HelloOfAnotherLengthIsNone) {
  const std::string body = body_of(FrameKind::hello, encode_hello({1, 0, 2, 3, {}}));
  for (std::size_t size = 0; size < body.size(); ++size) EXPECT_FALSE(decode_hello(body.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(decode_hello(body + '\0').has_value());
}

TEST(Frames, ReadyCarriesTheParentOrNone) {
  EXPECT_TRUE(decode_ready(body_of(FrameKind::ready, encode_ready({})))->empty());
  const RendezvousAddress parent = address_of_test();
  const auto back = decode_ready(body_of(FrameKind::ready, encode_ready(parent)));
  EXPECT_EQ(back->socket_name, parent.socket_name);
  EXPECT_EQ(back->addresses, parent.addresses);
  EXPECT_FALSE(decode_ready("x").has_value());
}

TEST(Frames, ContributionMayBeEmpty) {
  const std::string body = body_of(FrameKind::contribution, encode_contribution(40, ""));
  EXPECT_EQ(body.size(), kContributionOverhead);
  EXPECT_EQ(decode_contribution(body)->remaining_ms, 40U);
  EXPECT_EQ(decode_contribution(body)->message, "");
  EXPECT_FALSE(decode_contribution(body.substr(1)).has_value());
}

TEST(Frames, ResultGivesEachRankItsMessage) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> messages(1 + random() % 20);
    for (std::string& message : messages) message = random_text(random, 30);
    const std::string body = body_of(FrameKind::tree_result, encode_result(FrameKind::tree_result, messages));
    const int size = static_cast<int>(messages.size());
    EXPECT_EQ(decode_result(body, size), messages);
    EXPECT_LE(body.size(), result_limit(size));
    EXPECT_FALSE(decode_result(body + 'x', size).has_value()) << "bytes of no message";
    if (body.size() > messages.size() * 4) {
      EXPECT_FALSE(decode_result(body.substr(0, body.size() - 1), size).has_value()) << "cut off";
    }
  }
}

TEST(Frames, ResultWithLengthsBeyondItsBodyIsNone) {
  std::string body = body_of(FrameKind::result, encode_result(FrameKind::result, {"a", "b"}));
  EXPECT_FALSE(decode_result(body, 3).has_value()) << "of another number of ranks";
  std::memset(body.data(), 0xff, 4);
  EXPECT_FALSE(decode_result(body, 2).has_value());
  EXPECT_FALSE(decode_result("", 1).has_value());
  EXPECT_FALSE(decode_result(std::string(64, '\0'), 1 << 30).has_value()) << "makes no room for what cannot be there";
}

TEST(Frames, FailureCarriesCodeAndText) {
  const Status back = decode_failure(body_of(FrameKind::failure, encode_failure(failure(Code::timeout, "rank 3 did not join"))));
  EXPECT_EQ(back.code(), Code::timeout);
  EXPECT_EQ(back.text(), "rank 3 did not join");
}

// A failure must fail, whatever its bytes say.
TEST(Frames, FailureWithoutARealCodeIsAFailureStill) {
  for (const char* const body : {"", "\xff why", "\x09 why"}) {
    EXPECT_EQ(decode_failure(body).code(), Code::remote_error);
    EXPECT_EQ(decode_failure(body).text(), "the rendezvous failed, and the reason that it sent is malformed");
  }
  for (int code = 0; code < 256; ++code)
    EXPECT_FALSE(decode_failure(std::string(1, static_cast<char>(code)) + "why").ok()) << code;
}

TEST(Frames, FailureIsNeverInProgress) {
  const std::string body(1, static_cast<char>(Code::in_progress));
  EXPECT_EQ(decode_failure(body + "why").code(), Code::remote_error) << "else the caller would poll for ever";
}

TEST(Frames, OrphanNamesARank) {
  EXPECT_EQ(decode_orphan(body_of(FrameKind::orphan, encode_orphan(12))), 12);
  EXPECT_FALSE(decode_orphan("123").has_value());
  EXPECT_FALSE(decode_orphan("12345").has_value());
}

// Bodies of any bytes for every decoder: an answer or none, and no read beyond the body (sanitizers check that).
TEST(Frames, AnyBodyIsReadSafely) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int round = 0; round < 5000; ++round) {
    const std::string body = random_text(random, 160);
    const auto hello = decode_hello(body);
    EXPECT_TRUE(!hello.has_value() || body.size() == kHelloBodySize);
    const auto messages = decode_result(body, 1 + static_cast<int>(random() % 4));
    if (messages.has_value()) {
      std::size_t bytes = 4 * messages->size();
      for (const std::string& message : *messages) bytes += message.size();
      EXPECT_EQ(bytes, body.size());
    }
    EXPECT_FALSE(decode_failure(body).ok());
    (void)decode_ready(body);
  }
}

}  // namespace
}  // namespace seto
