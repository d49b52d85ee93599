// The rendezvous servers of a process, used by several threads.
#include "src/bootstrap/rendezvous/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "src/net/token.h"
#include "tests/support/child_process.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;
using testing::later;
using testing::loopback_network;

void wait_until_set(const std::atomic<bool>& flag) {
  for (const Deadline until = later(); !flag && !until.passed();) std::this_thread::yield();
}

Result<RootServer> start_one() {
  RootServer made;
  auto listeners = Listeners::open_named(random_socket_name());
  made.server = RendezvousServer::start(std::move(listeners).value(), {Secret::random(), UniqueId::Serves::job}).value();
  return made;
}

// In a child, because servers of roots stay until their process ends.
TEST(Servers, ASlowStartDelaysNoOtherThread) {
  ChildProcess process([] {
    std::atomic<bool> starting{false};
    std::atomic<bool> go{false};
    std::atomic<int> starts{0};
    const auto slow_start = [&] {
      ++starts;
      starting = true;
      wait_until_set(go);
      return start_one();
    };
    std::vector<const RootServer*> found(2);
    std::thread first([&] { found[0] = root_server("root", later(), slow_start).value(); });
    wait_until_set(starting);
    std::atomic<bool> made{false};
    std::thread other([&] {
      EXPECT_TRUE(create_unique_id(UniqueId::Serves::communicator, loopback_network(), later()).ok());
      EXPECT_TRUE(root_server("another root", later(), start_one).ok());
      const auto impatient = root_server("root", Deadline::after_ms(10), slow_start);
      EXPECT_THAT(std::string(impatient.status().text()), HasSubstr("still being started"));
      made = true;
    });
    wait_until_set(made);
    EXPECT_TRUE(made);
    std::thread second([&] { found[1] = root_server("root", later(), slow_start).value(); });
    go = true;
    for (std::thread* thread : {&first, &second, &other}) thread->join();
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(starts, 1);
    return true;
  });
  EXPECT_TRUE(process.wait());
}

TEST(Servers, AWaiterStartsAServerAfterAFailedStart) {
  ChildProcess process([] {
    std::atomic<bool> starting{false};
    std::atomic<bool> go{false};
    std::thread first([&] {
      const auto answer = root_server("root", later(), [&]() -> Result<RootServer> {
        starting = true;
        wait_until_set(go);
        return failure(Code::unavailable, "no luck");
      });
      EXPECT_THAT(std::string(answer.status().text()), HasSubstr("no luck"));
    });
    wait_until_set(starting);
    std::thread second([&] { EXPECT_TRUE(root_server("root", later(), start_one).ok()); });
    go = true;
    first.join();
    second.join();
    return true;
  });
  EXPECT_TRUE(process.wait());
}

}  // namespace
}  // namespace seto
