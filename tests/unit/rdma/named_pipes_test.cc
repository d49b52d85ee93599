#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <tuple>

#include "tests/support/named_memory_resource.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"

// Long payloads in memory that has a name are read where they lie.
namespace seto::rdma {
namespace {

using support::FakeFabric;
using support::PipePair;
using support::RdmaHost;
using Bytes = std::pmr::vector<char>;

constexpr std::size_t kLong = 64 << 10;

class NamedPipes : public ::testing::Test {
 protected:
  NamedPipes() {
    fabric.add_ethernet("a0", "10.0.0.1");
    fabric.add_ethernet("b0", "10.0.0.2");
    here = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"a0"});
    there = std::make_unique<RdmaHost>(fabric, std::vector<std::string>{"b0"});
    pipes = support::connect_pipes(here->pipes(), there->pipes(), [this] { fabric.run(); });
    for (char& each : memory) each = static_cast<char>(random());
    count();
  }
  void count() { fabric.count_reads_of(reinterpret_cast<const std::byte*>(memory.data()), memory.size()); }
  void move() {
    fabric.run();
    here->pipes().poll();
    there->pipes().poll();
  }
  // A header and a payload. Returns the number of bytes that were accepted.
  std::size_t send(const char* payload, std::size_t size, std::size_t from = 0) {
    const iovec parts[2] = {{header, kHeader}, {const_cast<char*>(payload), size}};
    iovec rest[2] = {parts[0], parts[1]};
    for (iovec& each : rest) {
      const std::size_t skipped = std::min(from, each.iov_len);
      each = {static_cast<char*>(each.iov_base) + skipped, each.iov_len - skipped};
      from -= skipped;
    }
    const bool begun = rest[0].iov_len == 0;
    const ssize_t sent = pipes.first->send({rest + (begun ? 1 : 0), begun ? 1U : 2U});
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    const iovec part{bytes.data(), size};
    const ssize_t got = pipes.second->receive({&part, 1});
    return bytes.substr(0, got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  std::string receive_all(std::size_t size) {
    std::string all;
    for (int turns = 0; turns < 1'000 && all.size() < size; ++turns) {
      move();
      all += receive(size - all.size());
    }
    return all;
  }
  [[nodiscard]] std::string expected(const char* payload, std::size_t size) const {
    return std::string(header, kHeader) + std::string(payload, size);
  }

  static constexpr std::size_t kHeader = 64;
  std::mt19937_64 random{testing::chosen_seed()};
  FakeFabric fabric{testing::chosen_seed()};
  support::NamedMemoryResource resource;
  Bytes memory = Bytes(4 * kLong, &resource);
  char header[kHeader] = "header";
  std::unique_ptr<RdmaHost> here, there;
  PipePair pipes;
};

TEST_F(NamedPipes, ReadLongPayloadsWhereTheyLie) {
  ASSERT_EQ(send(memory.data(), kLong), kHeader + kLong);
  EXPECT_EQ(pipes.first->accepted(), kHeader + kLong);
  EXPECT_EQ(pipes.first->released(), 0U);
  EXPECT_TRUE(receive_all(kHeader + kLong) == expected(memory.data(), kLong));
  EXPECT_EQ(fabric.bytes_read(), kLong) << "no byte of it was copied, nor read twice";
  EXPECT_EQ(pipes.first->released(), kHeader + kLong);
}

// A report needs nothing of the peer's program: it does not even read.
TEST_F(NamedPipes, ReleaseWithoutAReader) {
  std::size_t sent = 0;
  while (const std::size_t some = send(memory.data(), kLong, sent % (kHeader + kLong))) sent += some;
  EXPECT_GT(sent, 2 * kLong);
  EXPECT_EQ(pipes.first->accepted(), sent);
  EXPECT_LT(pipes.first->released(), sent);
  fabric.run();
  here->pipes().poll();
  EXPECT_EQ(pipes.first->released(), sent);
}

// The set-up of another pipe looks at completions, too, and takes those of this one.
TEST_F(NamedPipes, ReleaseWhileAnotherIsSetUp) {
  const auto selects = here->pipes().begin({PipeMaker::Role::selects, "rank 1", {}, 0});
  const auto follows = there->pipes().begin({PipeMaker::Role::follows, "rank 0", {}, 0});
  const auto pass = [](PipeSetUp& from, PipeSetUp& to) {
    while (const auto message = from.next_message()) EXPECT_TRUE(to.hear(*message).ok());
  };
  pass(*follows, *selects);
  pass(*selects, *follows);
  pass(*follows, *selects);
  ASSERT_EQ(send(memory.data(), kLong), kHeader + kLong);
  fabric.run();
  EXPECT_EQ(pipes.first->released(), 0U);
  (void)selects->advance();
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
  EXPECT_TRUE(receive_all(kHeader + kLong) == expected(memory.data(), kLong));
}

TEST_F(NamedPipes, CopyWhatIsShortOrHasNoName) {
  const std::size_t is_short = BytePipe::kLongPart - 1;
  ASSERT_EQ(send(memory.data(), is_short), kHeader + is_short);
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
  EXPECT_TRUE(receive_all(kHeader + is_short) == expected(memory.data(), is_short));
  EXPECT_EQ(fabric.bytes_read(), 0U);

  std::vector<char> unnamed(kLong, 'u');
  ASSERT_EQ(send(unnamed.data(), kLong), kHeader + kLong);
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
  const std::string sent = expected(unnamed.data(), kLong);
  std::fill(unnamed.begin(), unnamed.end(), 'w');
  EXPECT_TRUE(receive_all(kHeader + kLong) == sent);
}

TEST_F(NamedPipes, CopyWhatTheDeviceRefuses) {
  fabric.fail(VerbsCall::register_memory, ENOMEM);
  ASSERT_EQ(send(memory.data(), kLong), kHeader + kLong);
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
  EXPECT_TRUE(receive_all(kHeader + kLong) == expected(memory.data(), kLong));
  EXPECT_EQ(fabric.bytes_read(), 0U);
}

// A name that is taken back while the device reads: the registration ends with the last read.
TEST_F(NamedPipes, LoseANameInTheMiddle) {
  std::vector<char> buffer(kLong, 'b');
  const NamedMemory::Name name = NamedMemory::of_process().add(reinterpret_cast<std::byte*>(buffer.data()), kLong);
  ASSERT_EQ(send(buffer.data(), kLong), kHeader + kLong);
  NamedMemory::of_process().remove(name);
  EXPECT_TRUE(receive_all(kHeader + kLong) == expected(buffer.data(), kLong));
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
  ASSERT_EQ(send(buffer.data(), kLong), kHeader + kLong);
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted()) << "it is copied";
}

TEST_F(NamedPipes, ReadNothingAfterTheirEnd) {
  for (const bool destroyed : {false, true}) {
    pipes = {};
    pipes = support::connect_pipes(here->pipes(), there->pipes(), [this] { fabric.run(); });
    count();
    ASSERT_EQ(send(memory.data(), kLong), kHeader + kLong);
    for (int steps = 0; steps < 40; ++steps) fabric.step();
    const std::size_t before = fabric.bytes_read();
    EXPECT_GT(before, 0U);
    EXPECT_LT(before, kLong);
    pipes.first->close();
    EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
    if (destroyed) pipes.first.reset();
    fabric.run();
    here->pipes().poll();
    EXPECT_EQ(fabric.bytes_read(), before);
  }
}

// A queue pair that has failed may read until it is gone.
TEST_F(NamedPipes, KeepAfterABreakUntilTheyAreClosed) {
  ASSERT_EQ(send(memory.data(), kLong), kHeader + kLong);
  fabric.set_port("a0", 1, PortState::down);
  here->pipes().arm();
  here->pipes().poll();
  EXPECT_EQ(send(memory.data(), kLong), 0U);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_LT(pipes.first->released(), pipes.first->accepted());
  pipes.first->close();
  EXPECT_EQ(pipes.first->released(), pipes.first->accepted());
}

class FailingPipes : public NamedPipes, public ::testing::WithParamInterface<std::tuple<VerbsCall, std::uint64_t>> {};

// Each call of the library fails once, at each of its turns. Bytes that come are right, and come in order.
TEST_P(FailingPipes, CarryWhatTheyCarryInOrder) {
  const auto [call, after] = GetParam();
  fabric.fail(call, ENOMEM, after);
  std::string sent, got;
  constexpr std::size_t kFrame = kHeader + kLong;
  for (int turns = 0; turns < 200 && got.size() < 4 * kFrame; ++turns) {
    const char* const payload = memory.data() + std::min<std::size_t>(sent.size() / kFrame, 3) * kLong;
    const std::size_t at = sent.size() % kFrame;
    const std::size_t some = sent.size() < 4 * kFrame ? send(payload, kLong, at) : 0;
    sent += expected(payload, kLong).substr(at, some);
    move();
    got += receive(kLong);
    ASSERT_TRUE(got == sent.substr(0, got.size()));
  }
  EXPECT_EQ(got.size() == 4 * kFrame, call == VerbsCall::register_memory);
  pipes.first->close();
  const std::size_t read = fabric.bytes_read();
  fabric.run();
  EXPECT_EQ(fabric.bytes_read(), read);
}

INSTANTIATE_TEST_SUITE_P(All, FailingPipes,
                         ::testing::Combine(::testing::Values(VerbsCall::register_memory, VerbsCall::post_send,
                                                              VerbsCall::post_receive, VerbsCall::poll),
                                            ::testing::Range(std::uint64_t{0}, std::uint64_t{6})));

// ---- writes into the memory of the peer ----

TEST_F(NamedPipes, WriteIntoAPlaceOfThePeer) {
  Bytes place(kLong, &resource);
  auto* const target = reinterpret_cast<std::byte*>(place.data());
  const auto open = pipes.second->open_place(target, place.size());
  ASSERT_TRUE(open.has_value());
  const auto* const body = reinterpret_cast<const std::byte*>(memory.data());
  const ssize_t sent = pipes.first->write_in_place(std::as_bytes(std::span(header)), {body, kLong},
                                                   {reinterpret_cast<std::uint64_t>(target), open->key});
  ASSERT_EQ(sent, static_cast<ssize_t>(kHeader + kLong));
  EXPECT_EQ(pipes.first->accepted(), kHeader + kLong);
  EXPECT_EQ(pipes.first->released(), 0U) << "its device has not read it yet";
  EXPECT_EQ(receive_all(kHeader), std::string(header, kHeader));
  EXPECT_EQ(std::memcmp(place.data(), memory.data(), kLong), 0) << "it is there before its header";
  move();
  EXPECT_EQ(pipes.first->released(), kHeader + kLong);
  EXPECT_EQ(receive(1), "") << "the payload is not among the bytes";
  pipes.second->close_place(open->name);
}

TEST_F(NamedPipes, RefuseABodyWithoutAName) {
  Bytes place(kLong, &resource);
  const auto open = pipes.second->open_place(reinterpret_cast<std::byte*>(place.data()), place.size());
  ASSERT_TRUE(open.has_value());
  const std::string unnamed(kLong, 'u');
  EXPECT_EQ(pipes.first->write_in_place(std::as_bytes(std::span(header)), std::as_bytes(std::span(unnamed)),
                                        {reinterpret_cast<std::uint64_t>(place.data()), open->key}),
            -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(pipes.first->accepted(), 0U);
}

TEST_F(NamedPipes, OpenNoPlaceWithoutANameNorAfterTheEnd) {
  std::string unnamed(kLong, 'u');
  EXPECT_FALSE(pipes.second->open_place(reinterpret_cast<std::byte*>(unnamed.data()), unnamed.size()));
  pipes.second->close();
  EXPECT_FALSE(pipes.second->open_place(reinterpret_cast<std::byte*>(memory.data()), kLong));
}

// As many payloads as headers, however short the queue: a write without its header would be lost, or come twice.
TEST_F(NamedPipes, AcceptAWriteAndItsHeaderOrNeither) {
  Bytes place(kLong, &resource);
  auto* const target = reinterpret_cast<std::byte*>(place.data());
  const auto open = pipes.second->open_place(target, place.size());
  ASSERT_TRUE(open.has_value());
  fabric.count_writes_to(target, place.size());
  const auto* const body = reinterpret_cast<const std::byte*>(memory.data());
  std::size_t accepted = 0, got = 0;
  for (int turn = 0; turn < 100; ++turn) {
    while (pipes.first->write_in_place(std::as_bytes(std::span(header)), {body, kLong},
                                       {reinterpret_cast<std::uint64_t>(target), open->key}) > 0)
      ++accepted;
    EXPECT_EQ(errno, EAGAIN);
    move();
    if (turn % 2 == 0) got += receive(300 * kHeader).size() / kHeader;
  }
  while (const std::size_t more = receive_all(kHeader).size() / kHeader) got += more;
  EXPECT_GT(accepted, 300U);
  EXPECT_EQ(got, accepted);
  EXPECT_EQ(fabric.bytes_written(), accepted * kLong);
}

}  // namespace
}  // namespace seto::rdma
