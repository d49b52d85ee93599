// Whole messages handed over: accepted or full, counts that only grow, the sender's memory its own again once a count says so.

#include "transports/copy_face.h"

#include "tests/support/conformance.h"

namespace seto::support {
namespace {

using CopyFace = EveryTransport;

TEST_P(CopyFace, CarriesMessagesOfMemoryThatIsReused) {
  run({}, [](CircleMember& member) {
    constexpr std::uint64_t kMessages = 300;
    constexpr std::size_t kBuffers = 4;
    Circle& circle = member.circle();
    const std::uint32_t next = (member.index() + 1) % circle.members();
    const std::uint32_t last = (member.index() + circle.members() - 1) % circle.members();
    std::uint64_t operation = 0;
    for (const std::uint32_t size : {0U, 8U, 33U, 5000U}) {
      const StreamGeometry geometry{size, 2, kMessages, size};
      const auto out = circle.open_send({member.index(), 0, 0}, std::vector{next}, geometry).value();
      const auto in = circle.open_receive({last, 0, 0}, geometry).value();
      CopySender sender(*out, size);
      CopyReceiver receiver(*in, size);
      std::vector<std::vector<std::byte>> to_send(kBuffers, std::vector<std::byte>(size));
      std::vector<std::vector<std::byte>> received(kBuffers, std::vector<std::byte>(size));
      ++operation;
      std::uint64_t sent = 0, posted = 0, taken = 0;
      const bool ended = eventually([&] {
        if (sent < kMessages && sent < sender.sends_completed() + kBuffers) {
          auto& buffer = to_send[sent % kBuffers];
          write_pattern(buffer.data(), size, mixed(operation) + sent + member.index() * 100'000);
          if (sender.post_send(mark_of(operation, sent), {buffer.data(), size}) == Post::accepted) ++sent;
        }
        if (posted < kMessages && posted < taken + kBuffers) {
          auto& buffer = received[posted % kBuffers];
          if (receiver.post_receive(mark_of(operation, posted), {buffer.data(), size}) == Post::accepted) ++posted;
        }
        sender.progress();
        receiver.progress();
        EXPECT_LE(sender.sends_completed(), sent);
        for (; taken < receiver.receives_completed(); ++taken)
          EXPECT_TRUE(has_pattern(received[taken % kBuffers].data(), size, mixed(operation) + taken + last * 100'000));
        return sender.sends_completed() == kMessages && taken == kMessages;
      });
      EXPECT_TRUE(ended) << size << " bytes: " << sender.sends_completed() << " sent, " << taken << " received";
      circle.complete(operation);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, CopyFace, every_transport({2, 3}), name_of_both);

class CopyFaceOneThread : public OneThread {};

TEST_P(CopyFaceOneThread, IsFullUntilThePeerTakes) {
  const auto members = make({.members = 2});
  const StreamGeometry geometry{100, 2, 64, 1};
  const auto out = members[0]->circle().open_send({0, 0, 0}, std::vector{1U}, geometry).value();
  const auto in = members[1]->circle().open_receive({0, 0, 0}, geometry).value();
  CopySender sender(*out, 100);
  CopyReceiver receiver(*in, 100);
  std::vector<std::byte> message(100);
  std::uint64_t accepted = 0;
  while (accepted < 64 && sender.post_send(mark_of(1, accepted), {message.data(), message.size()}) == Post::accepted) ++accepted;
  EXPECT_EQ(sender.sends_completed(), geometry.depth) << "completed means: copied away";
  EXPECT_EQ(accepted, geometry.depth + kMostPosted);
  EXPECT_EQ(sender.post_send(mark_of(1, accepted), {message.data(), message.size()}), Post::full) << "full takes nothing";
  EXPECT_EQ(receiver.receives_completed(), 0U);
  EXPECT_EQ(receiver.post_receive(mark_of(1, 0), {message.data(), message.size()}), Post::accepted);
  EXPECT_EQ(receiver.receives_completed(), 1U);
  EXPECT_EQ(sender.post_send(mark_of(1, accepted), {message.data(), message.size()}), Post::accepted);
  EXPECT_EQ(sender.sends_completed(), geometry.depth + 1U);

  // Receives that were posted before anything came.
  for (std::uint64_t slice = 1; slice <= kMostPosted + 3; ++slice) {
    const Post post = receiver.post_receive(mark_of(1, slice), {message.data(), message.size()});
    if (post == Post::full) break;
    sender.progress();
  }
  receiver.progress();
  EXPECT_GT(receiver.receives_completed(), 3U);
}

INSTANTIATE_TEST_SUITE_P(All, CopyFaceOneThread, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support
