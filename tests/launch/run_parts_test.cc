#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/command/doctor/transfer.h"
#include "src/command/npy.h"
#include "src/command/run/hosts.h"
#include "src/command/run/lines.h"
#include "src/command/run/messages.h"
#include "src/command/run/spawn.h"
#include "tests/support/seed.h"

// The parts of `seto run` that start no process.
namespace seto::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const std::vector<Placement>& placements) {
  std::string text;
  for (const Placement& placement : placements) {
    text += placement.host + ":";
    for (const int rank : placement.ranks) text.append(" ").append(std::to_string(rank));
    text += "; ";
  }
  return text;
}

std::string placed(const std::string& hosts, int ranks) {
  const Result<std::vector<HostSlots>> list = parse_hosts(hosts);
  if (!list.ok()) return std::string(list.status().text());
  const Result<std::vector<Placement>> placements = place_ranks(list.value(), ranks);
  return placements.ok() ? text_of(placements.value()) : std::string(placements.status().text());
}

// The kernel would kill it when the thread ends.
TEST(Spawn, AThreadThatMayEndStartsNoProcess) {
  std::string text;
  std::thread([&] {
    SpawnOptions options;
    options.arguments = {"true"};
    const Result<pid_t> started = spawn(options);
    text = started.ok() ? "it started" : std::string(started.status().text());
  }).join();
  EXPECT_THAT(text, HasSubstr("by a thread"));
}

TEST(Hosts, RanksFollowSlotsOrAreSpread) {
  EXPECT_EQ(placed("a:2,b:2", 4), "a: 0 1; b: 2 3; ");
  EXPECT_EQ(placed("a:2,b:2", 3), "a: 0 1; b: 2; ");
  EXPECT_EQ(placed("a:2,b:2", 2), "a: 0 1; ");
  EXPECT_EQ(placed("a:2,b:3", 0), "a: 0 1; b: 2 3 4; ");
  EXPECT_EQ(placed("a,b", 5), "a: 0 1 2; b: 3 4; ");
  EXPECT_EQ(placed("a,b,c", 2), "a: 0; b: 1; ");
  EXPECT_EQ(placed("a,b", 0), "a: 0; b: 1; ");
  EXPECT_EQ(placed("a:1,b:1,a:1", 3), "a: 0 1; b: 2; ") << "a repeated host is merged";
  EXPECT_EQ(placed("[fd00::1]:2,fd00::2", 3), "fd00::1: 0 1; fd00::2: 2; ");
  EXPECT_THAT(placed("a:2,b:2", 5), HasSubstr("5 ranks, but the hosts have 4 slots"));
}

TEST(Hosts, InvalidHostsAreNamed) {
  for (const char* wrong : {"", ",", "a:0", "a:x", "a:-1", ":2", "-oProxyCommand=x", "a;b", "$(a)", "a:99999999"})
    EXPECT_FALSE(parse_hosts(wrong).ok()) << wrong;
}

TEST(Hosts, FilesHaveALineForEachHost) {
  const Result<std::vector<HostSlots>> hosts = parse_host_file("# ours\n a slots=2 # fast\n\nb:3\r\nc\n");
  ASSERT_TRUE(hosts.ok()) << hosts.status().text();
  std::vector<std::string> text;
  for (const HostSlots& host : hosts.value()) text.push_back(host.host + " " + std::to_string(host.slots));
  EXPECT_THAT(text, ElementsAre("a 2", "b 3", "c 0"));
  EXPECT_FALSE(parse_host_file("# none\n").ok());
}

TEST(Lines, PiecesAreJoinedToWholeLines) {
  Lines lines(Prefix::plain, 12);
  EXPECT_EQ(lines.add(3, Stream::output, "a"), "");
  EXPECT_EQ(lines.add(11, Stream::output, "x\n"), "[11] x\n");
  EXPECT_EQ(lines.add(3, Stream::error, "e\n"), "[ 3] e\n");
  EXPECT_EQ(lines.add(3, Stream::output, "b\n\nc"), "[ 3] ab\n[ 3] \n");
  EXPECT_EQ(lines.finish(3, Stream::output), "[ 3] c\n");
  EXPECT_EQ(lines.finish(3, Stream::output), "");
  EXPECT_EQ(Lines(Prefix::none, 2).add(0, Stream::output, "a"), "a");
  EXPECT_THAT(Lines(Prefix::coloured, 2).add(0, Stream::output, "a\n"), HasSubstr("\033["));
}

TEST(Lines, ALineWithoutEndIsCut) {
  Lines lines(Prefix::plain, 1);
  std::string text;
  for (int piece = 0; piece < 40; ++piece) text += lines.add(0, Stream::output, std::string(4096, 'x'));
  EXPECT_GE(text.size(), 2 * kLineLimit);
  EXPECT_EQ(text.back(), '\n');
}

// The bytes that a link of this speed would move in the measurements of the doctor.
struct Moved {
  double seconds = 0;
  std::size_t last = 0;
  int transfers = 0;
};
Moved moved_at(double bytes_per_second, double budget_s) {
  Moved moved;
  for (std::size_t bytes = kFirstTransfer; bytes > 0; ++moved.transfers) {
    const double took = static_cast<double>(bytes) / bytes_per_second;
    moved.last = bytes;
    moved.seconds += took;
    bytes = next_transfer(bytes, took, budget_s);
  }
  return moved;
}

TEST(Transfer, EveryLinkIsMeasuredWithinItsTime) {
  for (double rate = 1e4; rate < 1e11; rate *= 1.3) {
    const Moved moved = moved_at(rate, 0.25);
    EXPECT_LE(moved.seconds, std::max(0.25, static_cast<double>(kFirstTransfer) / rate)) << rate;
    EXPECT_LE(moved.transfers, 5) << rate;
    EXPECT_LE(moved.last, kMostTransfer) << rate;
  }
  EXPECT_GT(moved_at(1.25e6, 0.25).last, 100'000U) << "10 Mbit/s: a figure of a tenth of a second";
  EXPECT_EQ(moved_at(1e10, 0.25).last, kMostTransfer);
}

TEST(Messages, AreReadFromPieces) {
  std::mt19937_64 random(testing::chosen_seed());
  std::string stream;
  std::vector<std::string> sent;
  for (int index = 0; index < 200; ++index) {
    sent.emplace_back(random() % 300, static_cast<char>('a' + index % 26));
    stream += encode(Message::Kind::output, index, sent.back());
  }
  MessageReader reader;
  std::size_t got = 0;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 500, stream.size() - at);
    reader.append(std::string_view(stream).substr(at, size));
    at += size;
    while (true) {
      const Result<std::optional<Message>> message = reader.next();
      ASSERT_TRUE(message.ok());
      if (!message.value()) break;
      EXPECT_EQ(message.value()->number, static_cast<int>(got));
      EXPECT_EQ(message.value()->body, sent[got++]);
    }
  }
  EXPECT_EQ(got, sent.size());
}

TEST(Messages, MalformedBytesAreRejected) {
  MessageReader reader;
  reader.append("Last login: yesterday, from elsewhere\n");
  EXPECT_FALSE(reader.next().ok());
  MessageReader large;
  large.append(encode(Message::Kind::output, 0, {}).substr(0, 8) + "\xff\xff\xff\x7f");
  EXPECT_FALSE(large.next().ok()) << "a size from the wire must be checked before memory is allocated";
}

TEST(Messages, AssignmentsAreDecoded) {
  Assignment sent;
  sent.program = {{"prog", "a b", ""}, {"X=y\nz"}, "/tmp", "id:00", 7};
  sent.ranks = {2, 5};
  sent.grace_ms = 300;
  const std::string bytes = encode(sent);
  const Result<Assignment> got = decode_assignment(bytes);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().program.arguments, sent.program.arguments);
  EXPECT_EQ(got.value().program.variables, sent.program.variables);
  EXPECT_EQ(got.value().program.directory, "/tmp");
  EXPECT_EQ(got.value().program.root, "id:00");
  EXPECT_EQ(got.value().program.ranks, 7);
  EXPECT_EQ(got.value().ranks, sent.ranks);
  EXPECT_EQ(got.value().grace_ms, 300U);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_assignment(std::string_view(bytes).substr(0, size)).ok()) << size;
}

// ---- files of numpy ----

std::string npy(const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string refusal(const std::string& file) { return std::string(parse_npy(file).status().text()); }

TEST(Npy, IsReadAsNumpyWritesIt) {
  for (const auto& [shape, count] : {std::pair{"()", 1U}, {"(3,)", 3U}, {"(2, 3)", 6U}, {"(0, 5)", 0U}, {"(1, 2, 1)", 2U}}) {
    const std::string file =
        npy(std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") + shape + ", }", std::string(24, 'x'));
    const auto array = parse_npy(file);
    ASSERT_TRUE(array.ok()) << array.status().text();
    EXPECT_EQ(array.value().count, count) << shape;
    EXPECT_EQ(array.value().data.size(), count * 4) << shape;
  }
}

TEST(Npy, InvalidFilesAreRejected) {
  EXPECT_THAT(refusal(""), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal("my diary, which is long enough"), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal(npy("{'descr': '<i8', 'shape': (1,)}", "12345678")), HasSubstr("it holds '<i8'"));
  EXPECT_THAT(refusal(npy("{'descr': '<f2', 'fortran_order': False}", "12")), HasSubstr("it holds '<f2', not fp32"));
  EXPECT_THAT(refusal(npy("{'descr': '<f8', 'shape': (2,)}", "12345678")),
              HasSubstr("8 bytes of numbers, but its shape needs 16"));
  for (const char* shape : {"(x,)", "(99999999999, 99999999999)", "2", "(-1,)"})
    EXPECT_THAT(refusal(npy(std::string("{'descr': '<f4', 'shape': ") + shape + "}", "1234")), HasSubstr("shape cannot be read"))
        << shape;
  const std::string whole = npy("{'descr': '<f4', 'shape': (1,)}", "1234");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(parse_npy(whole.substr(0, size)).ok()) << size;
}

TEST(Npy, SurvivesMalformedFiles) {
  std::mt19937_64 random(testing::chosen_seed());
  const std::string whole = npy("{'descr': '<f4', 'shape': (2, 1)}", "12345678");
  for (int round = 0; round < 20'000; ++round) {
    std::string file = whole;
    for (int damage = 0; damage < 3; ++damage) file[random() % file.size()] = static_cast<char>(random());
    const auto array = parse_npy(file);
    if (!array.ok()) continue;
    EXPECT_LE(array.value().data.size(), file.size());
  }
}

}  // namespace
}  // namespace seto::command
