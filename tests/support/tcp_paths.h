#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/flows.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_path_frames.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {
using support::Buffer;
using support::Dialer;
using support::Frames;

inline constexpr std::uint64_t kGroup = 7;
inline constexpr std::size_t kMostPaths = 3;

struct End {
  std::unique_ptr<Domain> domain = Domain::create().value();
  std::shared_ptr<Dialer> dialer = std::make_shared<Dialer>();
  Frames frames;
  std::shared_ptr<Link> link;
};

// A link of several sockets whose paths break. The test carries the bytes of each path itself, so it decides which of them
// arrive.
class TcpPaths : public ::testing::Test {
 protected:
  ~TcpPaths() override {
    for (End& end : ends_) {
      if (end.link == nullptr) continue;
      const std::lock_guard lock(end.domain->lock());
      end.link->leave(kGroup);
    }
    for (End& end : ends_) end.domain->hurry(true);
  }

  void connect(bool dials, std::uint64_t patience_ms = 60'000, std::uint32_t round_trip_us = 0) {
    Link::Setup setups[2];
    setups[0].session = setups[1].session = Secret::random();
    for (std::size_t path = 0; path < paths_; ++path)
      for (std::size_t end = 0; end < 2; ++end) {
        auto [one, other] = support::connected_over_loopback();
        setups[end].sockets.emplace_back(std::move(one));
        wires_[path].ends[end] = std::move(other);
      }
    for (std::size_t end = 0; end < 2; ++end) {
      setups[end].continues = true;
      setups[end].patience_ms = patience_ms;
      setups[end].round_trip_us = round_trip_us;
      setups[end].routes = routes_;
      setups[end].together = together_;
      setups[end].adapts = adapts_;
      if (dials) setups[end].dialer = ends_[end].dialer;
      ends_[end].link = ends_[end].domain->add(std::move(setups[end])).value();
      const std::lock_guard lock(ends_[end].domain->lock());
      ends_[end].link->enter(kGroup, ends_[end].frames, 0, 0);
    }
  }
  void every_byte_comes_once();
  // Moves at most so many bytes of a path in the direction to that end.
  std::size_t carry(std::size_t path, std::size_t to, std::size_t most) {
    Wire& wire = wires_[path];
    if (wire.ends[0].get() < 0) return 0;
    std::vector<char> bytes(std::min<std::size_t>(most, 64 << 10));
    const ssize_t got = recv(wire.ends[1 - to].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return 0;
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t some = send(wire.ends[to].get(), bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (some < 0 && errno == EAGAIN) {
        ends_[to].domain->pump();  // makes room
        continue;
      }
      if (some < 0) break;
      sent += some;
    }
    carried_[path] += static_cast<std::size_t>(got);
    return static_cast<std::size_t>(got);
  }
  void pump() {
    for (End& end : ends_) end.domain->pump();
  }
  // Both directions of all paths but those that are held.
  template <class Condition>
  bool run_until(const Condition& condition) {
    return support::eventually([&] {
      pump();
      for (std::size_t path = 0; path < paths_; ++path)
        for (std::size_t to = 0; to < 2; ++to)
          if (!held_[path]) carry(path, to, 64 << 10);
      return condition();
    });
  }
  // The bytes that are on their way are lost.
  void cut(std::size_t path) {
    for (PrivateFd& end : wires_[path].ends) {
      const linger at_once{1, 0};
      (void)setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      end = PrivateFd();
    }
  }
  void renew(std::size_t path) {
    ++attempt_;
    for (std::size_t end = 0; end < 2; ++end) {
      auto [one, other] = support::connected_over_loopback();
      wires_[path].ends[end] = std::move(other);
      const std::lock_guard lock(ends_[end].domain->lock());
      ends_[end].domain->take_path(*ends_[end].link, path, SecureStream(std::move(one)), attempt_);
    }
  }
  // Frames of random sizes from one buffer. Returns what they hold, by mark.
  std::map<std::uint64_t, std::string> queue(std::size_t from, const std::shared_ptr<Buffer>& buffer, std::size_t most) {
    std::map<std::uint64_t, std::string> expected;
    const std::lock_guard lock(ends_[from].domain->lock());
    for (std::byte& each : buffer->bytes) each = static_cast<std::byte>(random_());
    for (std::size_t at = 0; at < buffer->bytes.size();) {
      Frame frame;
      frame.set_kind(FrameKind::data);
      frame.peer_group = kGroup;
      frame.mark = ++mark_;
      frame.length = static_cast<std::uint32_t>(std::min(random_() % most, buffer->bytes.size() - at));
      const std::byte* const data = buffer->bytes.data() + at;
      ends_[from].link->queue({frame, data, {buffer, &buffer->lender}, &buffer->unwritten});
      expected[mark_].assign(reinterpret_cast<const char*>(data), frame.length);
      at += frame.length;
    }
    return expected;
  }
  // The caller has its buffer back and writes over it.
  void overwrite(std::size_t from, const std::shared_ptr<Buffer>& buffer) {
    const std::lock_guard lock(ends_[from].domain->lock());
    ASSERT_TRUE(ends_[from].link->give_back(buffer->lender));
    ASSERT_FALSE(buffer->lender.needed());
    std::fill(buffer->bytes.begin(), buffer->bytes.end(), std::byte{0xee});
  }
  [[nodiscard]] std::string why() const { return ends_[0].link->broken() ? std::string(ends_[0].link->why().text()) : ""; }

  struct Wire {
    PrivateFd ends[2];
  };
  End ends_[2];
  std::size_t paths_ = kMostPaths;
  std::size_t routes_ = 1;
  bool together_ = false;
  bool adapts_ = false;
  Wire wires_[kMostPaths];
  bool held_[kMostPaths] = {};
  std::size_t carried_[kMostPaths] = {};  // bytes, both directions
  std::uint32_t attempt_ = 0;
  std::uint64_t mark_ = 0;
  std::mt19937_64 random_{testing::chosen_seed()};
};

// Cuts after any number of bytes, of any number of paths, also of all at once; both directions.
inline void TcpPaths::every_byte_comes_once() {
  connect(true);
  std::map<std::uint64_t, std::string> expected[2];
  for (int call = 0; call < 30; ++call) {
    std::shared_ptr<Buffer> buffers[2];
    for (std::size_t end = 0; end < 2; ++end) {
      buffers[end] = std::make_shared<Buffer>(100'000);
      expected[1 - end].merge(queue(end, buffers[end], call % 2 == 0 ? 70 : 60'000));
    }
    bool over[2] = {};
    ASSERT_TRUE(support::eventually([&] {
      pump();
      const std::size_t path = random_() % paths_;
      for (std::size_t to = 0; to < 2; ++to) carry(path, to, 1 + random_() % 20'000);
      if (random_() % 16 == 0) cut(random_() % paths_);
      if (random_() % 100 == 0)
        for (std::size_t each = 0; each < paths_; ++each) cut(each);
      for (std::size_t each = 0; each < paths_; ++each)
        if (wires_[each].ends[0].get() < 0 && random_() % 4 == 0) renew(each);
      // As soon as no frame waits in the queue, the call may end.
      for (std::size_t end = 0; end < 2; ++end)
        if (!over[end] && buffers[end]->unwritten.load() == 0 && random_() % 4 == 0) {
          overwrite(end, buffers[end]);
          over[end] = true;
        }
      return over[0] && over[1];
    })) << why();
  }
  for (std::size_t each = 0; each < paths_; ++each) {
    cut(each);  // a wire that ends in order is the end of the link
    renew(each);
  }
  ASSERT_TRUE(run_until([&] { return ends_[0].frames.whole == expected[0] && ends_[1].frames.whole == expected[1]; })) << why();
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); })) << "all is acknowledged";
  EXPECT_GT(ends_[0].frames.unplaced + ends_[1].frames.unplaced, 0);
}

}  // namespace seto::tcp
