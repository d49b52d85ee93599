#include "src/net/congestion.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"

namespace seto {
namespace {

class Congestion : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = listen_tcp({parse_host("127.0.0.1").value()}, {}, 1);
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(*listener);
    const Deadline soon = Deadline::after_ms(10'000);
    auto caller = connect_tcp(listener_.addresses.front(), soon);
    ASSERT_TRUE(caller.ok());
    caller_ = std::move(*caller);
    ASSERT_TRUE(wait_for(listener_.sockets.front().get(), POLLIN, soon).ok());
    answerer_ = accept_tcp(listener_.sockets.front());
  }
  static bool take(const PrivateFd& fd, const char* name) {
    return setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, static_cast<socklen_t>(std::strlen(name))) == 0;
  }

  TcpListener listener_;
  PrivateFd caller_;
  PrivateFd answerer_;
};

TEST_F(Congestion, ANearSocketIsNotPaced) {
  if (!take(caller_, "bbr") || !take(answerer_, "bbr")) GTEST_SKIP() << "skipped: this kernel has no bbr";
  for (const PrivateFd* const end : {&caller_, &answerer_}) {
    const std::string chosen = choose_congestion_control(end->get());
    EXPECT_TRUE(chosen == "cubic" || chosen == "reno") << chosen;
  }
}

TEST_F(Congestion, OtherCongestionControlsStay) {
  ASSERT_TRUE(take(caller_, "reno"));
  EXPECT_EQ(choose_congestion_control(caller_.get()), "reno");
}

TEST(CongestionOfNothing, IsUnknown) { EXPECT_EQ(choose_congestion_control(-1), ""); }

}  // namespace
}  // namespace seto
