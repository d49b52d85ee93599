// The descriptor of a bell that is gone, and whose number the application has by now.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "src/core/context.h"
#include "tests/support/other_context.h"
#include "tests/support/ranks.h"
#include "tests/support/room.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kInitMs = 10'000;
constexpr AttemptId kAttempt = 77;

struct Stage {
  Room room;
  std::atomic<bool> rung{false};
  std::atomic<bool> closed{false};
  std::atomic<bool> over{false};
};

Result<std::shared_ptr<Connection>> meet_other(Context& context, Room& room, const Seat& seat) {
  const Deadline until = Deadline::after_ms(kInitMs);
  SETO_ASSIGN(PeerAddress other, other_context(context, room, seat, until));
  other.attempt = kAttempt;
  return context.open(other, until);
}

// A copy of the descriptor keeps the socket in the epoll set, as one in another process would, so that the bell still arrives
// under its old name.
TEST(BellOfAnother, IsNotReadFromTheDescriptorThatHasItsNumberNow) {
  const Shared<Stage> shared;
  run_ranks(Kind::processes, 2, [&](const Seat& seat) {
    Result<std::shared_ptr<Context>> made = Context::create({});
    ASSERT_TRUE(made.ok()) << made.status().text();
    Context& context = *made.value();
    Result<std::shared_ptr<Connection>> met = meet_other(context, shared->room, seat);
    ASSERT_TRUE(met.ok()) << met.status().text();
    std::shared_ptr<Connection> connection = std::move(met).value();
    if (seat.rank == 1) {
      EXPECT_TRUE(eventually([&] { return shared->closed.load(); }));
      connection->ring();
      shared->rung = true;
      EXPECT_TRUE(eventually([&] { return shared->over.load(); }));
      return;
    }
    const int number = connection->socket();
    const Fd copy(dup(number));
    connection.reset();
    std::array<int, 2> pair{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
    const Fd theirs(pair[1]);
    if (pair[0] != number) {
      ASSERT_EQ(dup2(pair[0], number), number);
      close(pair[0]);
    }
    const Fd ours(number);
    ASSERT_EQ(write(theirs.get(), "mine", 4), 4);
    shared->closed = true;
    EXPECT_TRUE(eventually([&] { return shared->rung.load(); }));
    context.await_bell(1000);
    std::array<char, 8> heard{};
    EXPECT_EQ(read(ours.get(), heard.data(), heard.size()), 4) << "what was the application's has been taken";
    EXPECT_EQ(read(copy.get(), heard.data(), heard.size()), 1) << "no bell arrived, so that this test shows nothing";
    shared->over = true;
  });
}

}  // namespace
}  // namespace seto::testing
