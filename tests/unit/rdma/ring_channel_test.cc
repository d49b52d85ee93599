#include "transports/rdma/link/ring_channel.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <deque>
#include <random>

#include "tests/support/seed.h"
#include "tests/unit/rdma/channel_ends.h"

namespace seto::rdma {
namespace {

using support::FakeFabric;
using ::testing::HasSubstr;

class Channel : public ChannelTest {
 protected:
  Channel() {
    fabric.add_ethernet("rxe0", "10.0.0.1");
    fabric.add_ethernet("rxe1", "10.0.0.2");
  }
  void exchange_once() {
    ends[0].channel->flush();
    fabric.run();
    for (ChannelEnd& end : ends) end.poll();
    fabric.run();
    for (ChannelEnd& end : ends) end.poll();
  }

  FakeFabric fabric{testing::chosen_seed()};
};

TEST_F(Channel, CarriesARecordOfTwoParts) {
  open(fabric);
  ASSERT_TRUE(send(ends[0], "header", "payload"));
  exchange_once();
  EXPECT_EQ(front(ends[1]), "headerpayload");
  ends[1].channel->release();
  EXPECT_EQ(front(ends[1]), "");
}

TEST_F(Channel, ShowsNothingBeforeItsCompletion) {
  open(fabric);
  ASSERT_TRUE(send(ends[0], std::string(3'000, 'a')));
  ends[0].channel->flush();
  int steps = 0;
  while (fabric.step()) {
    ++steps;
    if (fabric.starving() == 0 && front(ends[1]).empty()) ends[1].poll();
    const std::string arrived = front(ends[1]);
    ASSERT_TRUE(arrived.empty() || arrived == std::string(3'000, 'a'));
  }
  ends[1].poll();
  EXPECT_EQ(front(ends[1]), std::string(3'000, 'a'));
  EXPECT_GT(steps, 12) << "the bytes came in pieces";
}

TEST_F(Channel, OverInfinibandNeedsNoGid) {
  FakeFabric infiniband(1);
  infiniband.add_infiniband("mlx5_0", 3);
  infiniband.add_infiniband("mlx5_1", 4);
  open(infiniband);
  ASSERT_TRUE(send(ends[0], "by LID"));
  ends[0].channel->flush();
  infiniband.run();
  ends[1].poll();
  EXPECT_EQ(front(ends[1]), "by LID");
  close();
}

TEST_F(Channel, IsProvedByAMessageInBothDirections) {
  open(fabric);
  EXPECT_FALSE(ends[0].channel->proved());
  for (ChannelEnd& end : ends) end.channel->probe();
  ends[1].channel->flush();
  exchange_once();
  EXPECT_TRUE(ends[0].channel->proved());
  EXPECT_TRUE(ends[1].channel->proved());
  EXPECT_EQ(front(ends[0]), "");
}

TEST_F(Channel, RingsTheDoorbellOnceForManyRecords) {
  open(fabric);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(ends[0], "record"));
  const std::size_t before = fabric.doorbells();
  ends[0].channel->flush();
  EXPECT_EQ(fabric.doorbells(), before + 1);
  fabric.run();
  EXPECT_EQ(fabric.signalled(), 0U) << "ten requests need no report yet";
}

TEST_F(Channel, IsDeliveredOnceTheDeviceSaysSo) {
  open(fabric);
  ASSERT_TRUE(send(ends[0], "last words"));
  ends[0].channel->flush();
  EXPECT_FALSE(ends[0].channel->delivered());
  ends[0].channel->settle();
  EXPECT_FALSE(ends[0].channel->delivered());
  fabric.run();
  ends[0].poll();
  EXPECT_TRUE(ends[0].channel->delivered());
  ends[0].close();
  ends[1].poll();
  EXPECT_EQ(front(ends[1]), "last words");
}

TEST_F(Channel, WaitsForAReaderThatIsSlow) {
  open(fabric, 16 << 10, 32);
  std::size_t sent = 0;
  while (send(ends[0], "x")) ++sent;
  EXPECT_EQ(sent, 32U);
  for (int i = 0; i < 10; ++i) exchange_once();
  EXPECT_FALSE(send(ends[0], "x")) << "nothing was released";
  for (int i = 0; i < 7; ++i) ends[1].channel->release();
  exchange_once();
  EXPECT_FALSE(send(ends[0], "x")) << "seven of 32 are not told yet";
  ends[1].channel->release();
  exchange_once();
  EXPECT_TRUE(send(ends[0], "x"));
}

struct Shape {
  const char* name;
  std::uint64_t ring;
  std::uint32_t records;
  std::size_t longest;
  bool both_directions;
  std::uint32_t queue = ~std::uint32_t{0};
};

class ChannelStream : public ChannelTest, public ::testing::WithParamInterface<Shape> {};

// The bytes of record number `number`.
std::string record(std::uint64_t number, std::size_t longest) {
  std::mt19937_64 random(number + 1);
  const bool short_one = random() % 2 == 0;
  std::string bytes(1 + random() % (short_one ? 200 : longest), '\0');
  for (char& each : bytes) each = static_cast<char>(random());
  return bytes;
}

TEST_P(ChannelStream, KeepsOrderAndContents) {
  const Shape& shape = GetParam();
  const std::uint64_t seed = testing::chosen_seed();
  FakeFabric fabric(seed);
  fabric.add_ethernet("rxe0", "10.0.0.1");
  fabric.add_ethernet("rxe1", "10.0.0.2");
  fabric.limit_queues(shape.queue);
  const std::shared_ptr<void> at_the_end(nullptr, [this](void*) { close(); });
  open(fabric, shape.ring, shape.records);
  std::mt19937_64 random(seed);
  constexpr std::uint64_t kRecords = 1'500;
  std::uint64_t sent[2] = {0, shape.both_directions ? 0 : kRecords}, read[2] = {};
  read[0] = shape.both_directions ? 0 : kRecords;
  std::uint64_t rounds = 0, moved = 0;
  while (read[0] < kRecords || read[1] < kRecords) {
    ASSERT_LT(++rounds, 200'000U) << "stuck after " << moved << " records";
    const std::size_t i = random() % 2;
    ChannelEnd& end = ends[i];
    switch (random() % 4) {
      case 0:
        while (sent[i] < kRecords && random() % 8 != 0) {
          if (!send(end, record(sent[i], shape.longest))) break;
          ++sent[i];
        }
        break;
      case 1:
        end.poll();
        break;
      case 2:
        for (std::uint64_t steps = random() % 64; steps > 0; --steps) fabric.step();
        break;
      default:
        while (!end.channel->front().empty() && random() % 8 != 0) {
          ASSERT_EQ(front(end), record(read[i], shape.longest)) << "record " << read[i];
          end.channel->release();
          ++read[i];
          ++moved;
        }
    }
    ASSERT_FALSE(end.channel->broken()) << end.channel->why().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ChannelStream,
                         ::testing::Values(Shape{"Usual", 64 << 10, 128, 16 << 10, true},
                                           Shape{"OneDirection", 64 << 10, 128, 16 << 10, false},
                                           Shape{"SmallRing", 4 << 10, 64, 1 << 10, true},
                                           Shape{"FewRecords", 64 << 10, 4, 16 << 10, true},
                                           Shape{"OneDirectionFewRecords", 64 << 10, 4, 16 << 10, false},
                                           Shape{"ShortQueue", 64 << 10, 128, 4 << 10, true, 17}),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- failures ----

TEST_F(Channel, BreaksWithTheReasonOfTheDevice) {
  for (const CompletionStatus status :
       {CompletionStatus::retry_exceeded, CompletionStatus::remote_access_error, CompletionStatus::fatal}) {
    open(fabric);
    fabric.fail_completion(status);
    ASSERT_TRUE(send(ends[0], "lost"));
    exchange_once();
    ASSERT_TRUE(ends[0].channel->broken());
    EXPECT_THAT(std::string(ends[0].channel->why().text()), HasSubstr("RDMA to rank 1 failed"));
    EXPECT_THAT(std::string(ends[0].channel->why().text()), HasSubstr("status " + std::to_string(static_cast<int>(status))));
    EXPECT_FALSE(send(ends[0], "more"));
    EXPECT_FALSE(ends[0].channel->delivered());
    close();
  }
}

TEST_F(Channel, ReadsWhatCameBeforeItBroke) {
  open(fabric);
  ASSERT_TRUE(send(ends[0], "first"));
  exchange_once();
  ASSERT_TRUE(send(ends[1], "lost"));
  fabric.fail_completion(CompletionStatus::retry_exceeded);
  ends[1].channel->flush();
  fabric.run();
  ends[1].poll();
  ASSERT_TRUE(ends[1].channel->broken());
  EXPECT_EQ(front(ends[1]), "first");
}

TEST_F(Channel, BreaksWhenThePeerIsGone) {
  open(fabric);
  ends[1].close();
  ASSERT_TRUE(send(ends[0], "to no one"));
  ends[0].channel->flush();
  fabric.run();
  ends[0].poll();
  EXPECT_THAT(std::string(ends[0].channel->why().text()), HasSubstr("no answer from the peer's device"));
}

TEST_F(Channel, SurvivesAShortOutageOfThePort) {
  open(fabric);
  fabric.set_port("rxe1", 1, PortState::down);
  ASSERT_TRUE(send(ends[0], "patient"));
  ends[0].channel->flush();
  for (int i = 0; i < 20; ++i) fabric.step();
  fabric.set_port("rxe1", 1, PortState::active);
  fabric.run();
  ends[1].poll();
  EXPECT_EQ(front(ends[1]), "patient");
  ends[0].poll();
  EXPECT_FALSE(ends[0].channel->broken());
}

TEST_F(Channel, RefusesPacketsOfAnEarlierConnection) {
  open(fabric);
  ChannelAddress stale = ends[1].channel->address();
  stale.sequence ^= 1;
  RingChannel::Setup setup = setup_of(ends[0], "rank 1", 16 << 10, 32);
  setup.sequence = 5;  // rank 1 expects the packets of the first channel
  auto other = RingChannel::create(std::move(setup)).value();
  ASSERT_TRUE(other->connect(stale).ok());
  ASSERT_TRUE(other->send(std::as_bytes(std::span("stale")), {}));
  other->flush();
  fabric.run();
  ends[0].poll();
  EXPECT_TRUE(other->broken());
  ends[1].poll();
  EXPECT_EQ(front(ends[1]), "");
}

TEST_F(Channel, RefusesAPeerOfAnotherShape) {
  open(fabric);
  ChannelAddress other = ends[1].channel->address();
  other.ring_size *= 2;
  EXPECT_THAT(std::string(ends[0].channel->connect(other).text()), HasSubstr("rank 1 has a ring of 32768 bytes"));
}

TEST_F(Channel, BreaksWhenThePeerWritesMoreThanFits) {
  open(fabric);
  // A peer that ignores credit: its own counters say that everything was released.
  std::vector<std::byte> source(4'096);
  const auto region = ends[0].device->register_memory(source.data(), source.size()).value();
  const ChannelAddress target = ends[1].channel->address();
  // The queue pair of end 0 is not at hand, so a channel with a larger ring stands for it.
  RingChannel::Setup setup = setup_of(ends[1], "rank 0", 16 << 10, 32);
  const auto victim = RingChannel::create(std::move(setup)).value();
  const auto pair = ends[0].device->create_queue_pair(ends[0].completions->queue(), {64, 64, 0}).value();
  QueuePairPath path = setup_of(ends[0], "", 0, 0).path;
  path.mtu = 1'024;
  path.remote_gid = target.gid;
  path.remote_queue_pair = victim->queue_pair();
  path.own_sequence = path.remote_sequence = 0;
  ASSERT_TRUE(pair->prepare(path).ok());
  ASSERT_TRUE(pair->connect(path).ok());
  ChannelAddress attacker = ends[0].channel->address();
  attacker.queue_pair = pair->number();
  attacker.sequence = 0;
  ASSERT_TRUE(victim->connect(attacker).ok());
  SendRequest write;
  write.kind = SendRequest::Kind::write_with_immediate;
  write.source = source.data();
  write.size = 4'096;
  write.local_key = region->local_key();
  write.target = victim->address().ring;
  write.remote_key = victim->address().ring_key;
  const std::vector<SendRequest> writes(5, write);
  ASSERT_EQ(pair->post(std::span<const SendRequest>(writes)).value(), writes.size());
  fabric.run();
  ends[1].poll();
  ASSERT_TRUE(victim->broken());
  EXPECT_THAT(std::string(victim->why().text()), HasSubstr("breaks the rules of the ring"));
}

TEST_F(Channel, EveryCallOfItsSetUpMayFail) {
  for (const VerbsCall call : {VerbsCall::query_device, VerbsCall::create_completion_queue, VerbsCall::register_memory,
                               VerbsCall::create_queue_pair, VerbsCall::prepare, VerbsCall::post_receive}) {
    ChannelEnd end;
    end.verbs = fabric.verbs();
    end.device = end.verbs->open_device("rxe0").value();
    RingChannel::Setup setup;
    {
      end.completions = Completions::create(*end.device).value();
      setup = setup_of(end, "rank 1", 16 << 10, 32);
    }
    fabric.fail(call, ENOMEM);
    Status status;
    if (auto completions = Completions::create(*end.device); !completions.ok())
      status = completions.status();
    else
      status = RingChannel::create(setup).status();
    EXPECT_FALSE(status.ok()) << name_of(call);
    EXPECT_THAT(std::string(status.text()), HasSubstr(name_of(call)));
    EXPECT_EQ(status.code(), Code::unavailable);
    EXPECT_TRUE(RingChannel::create(setup).ok()) << "nothing of the failed attempt is left";
  }
}

TEST_F(Channel, ALimitOfLockedMemoryIsNamedWithItsRemedy) {
  ChannelEnd end;
  end.verbs = fabric.verbs();
  end.device = end.verbs->open_device("rxe0").value();
  end.completions = Completions::create(*end.device).value();
  fabric.fail(VerbsCall::register_memory, ENOMEM, 1);
  const Status status = RingChannel::create(setup_of(end, "rank 1", 16 << 10, 32)).status();
  EXPECT_THAT(std::string(status.text()), HasSubstr("ulimit -l unlimited"));
}

TEST_F(Channel, EveryCallOfItsUseMayFail) {
  open(fabric);
  fabric.fail(VerbsCall::post_send, EIO);
  ASSERT_TRUE(send(ends[0], "x"));
  ends[0].channel->flush();
  EXPECT_THAT(std::string(ends[0].channel->why().text()), HasSubstr("ibv_post_send"));
  fabric.fail(VerbsCall::poll, EIO);
  EXPECT_FALSE(ends[1].completions->poll().ok());
  fabric.fail(VerbsCall::arm, EIO);
  EXPECT_FALSE(ends[1].completions->arm().ok());
  fabric.fail(VerbsCall::ready_to_receive, ENETUNREACH);
  const auto other = RingChannel::create(setup_of(ends[1], "rank 0", 16 << 10, 32)).value();
  EXPECT_THAT(std::string(other->connect(ends[0].channel->address()).text()), HasSubstr("no route"));
}

TEST_F(Channel, EventsOfTheDeviceAreTold) {
  open(fabric);
  EXPECT_FALSE(ends[0].device->next_event().has_value());
  fabric.set_port("rxe0", 1, PortState::down);
  fabric.remove("rxe1");
  const auto event = ends[0].device->next_event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(to_text(*event), "port 1 is down");
  ends[1].poll();
  EXPECT_TRUE(ends[1].channel->broken());
  EXPECT_EQ(to_text(ends[1].device->next_event().value()), "the device was removed or has failed");
  EXPECT_FALSE(ends[1].device->facts().ok());
}

}  // namespace
}  // namespace seto::rdma
