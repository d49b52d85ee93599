#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/flows.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_path_frames.h"
#include "tests/support/tcp_peer_groups.h"
#include "transports/tcp/link/domain.h"

// A link between two hosts with rails over fake devices.
namespace seto::support {

using tcp::Domain;
using tcp::FrameKind;
using tcp::Link;
using tcp::OpenSocket;
using tcp::PathPipe;

inline constexpr std::uint64_t kRailsGroup = 7;

// Tells the other end which of its rails have broken, when that one pumps.
class TellsOfRails final : public tcp::RailOpener {
 public:
  void tell(const std::shared_ptr<TellsOfRails>& other) { other_ = other; }
  void advance(Domain&, Link& link) override {
    for (const auto& [rail, attempt] : std::exchange(lost_, {}))
      link.peer_lost_rail(link.sockets() - link.rails() + rail, attempt);
  }
  [[nodiscard]] bool busy() const override { return !lost_.empty(); }
  void broke(std::size_t rail, std::uint32_t attempt) override {
    if (const auto other = other_.lock()) other->lost_.emplace_back(rail, attempt);
  }
  void give_up() override {}

 private:
  std::weak_ptr<TellsOfRails> other_;
  std::vector<std::pair<std::size_t, std::uint32_t>> lost_;
};

struct RailEnd {
  std::unique_ptr<RdmaHost> host;
  std::unique_ptr<Domain> domain = Domain::create().value();
  std::shared_ptr<Dialer> dialer = std::make_shared<Dialer>();
  std::shared_ptr<TellsOfRails> rails = std::make_shared<TellsOfRails>();
  Frames frames;
  std::shared_ptr<Link> link;
  const tcp::WayChoice* choice = nullptr;  // of the link, if it was given
};

// One socket over loopback, and two places for rails, between two hosts of two devices each.
class TcpRails : public ::testing::Test {
 protected:
  // Sets up the rails of that end.
  using MakeOpener = std::function<std::shared_ptr<tcp::RailOpener>(std::size_t end, PipeMaker& maker)>;

  // `setting`: of SETO_RDMA. Where it does not keep everything on rails, real time decides which way long frames take, unless the
  // choice is given.
  using MakeChoice = std::unique_ptr<tcp::WayChoice> (*)();
  explicit TcpRails(FakeFabric::Drive drive = FakeFabric::Drive::by_hand, const MakeOpener& opener = {},
                    const char* setting = "always", MakeChoice choice = nullptr)
      : fabric_(std::make_unique<FakeFabric>(seed_, drive)), drive_(drive) {
    fabric_->add_ethernet("a0", "10.0.0.1");
    fabric_->add_ethernet("b0", "10.0.0.2");
    fabric_->add_ethernet("a1", "10.1.0.1");
    fabric_->add_ethernet("b1", "10.1.0.2");
    ends_[0].host = make_host({"a0", "a1"}, setting);
    ends_[1].host = make_host({"b0", "b1"}, setting);
    auto [one, other] = support::connected_over_loopback();
    PrivateFd* const sockets[2] = {&one, &other};
    const Secret session = Secret::random();
    for (std::size_t end = 0; end < 2; ++end) {
      EXPECT_TRUE(ends_[end].domain->use_pipes(&ends_[end].host->pipes()).ok());
      Link::Setup setup;
      setup.sockets.emplace_back(std::move(*sockets[end]));
      setup.session = session;
      setup.continues = true;
      setup.patience_ms = 60'000;
      setup.dialer = ends_[end].dialer;
      setup.rails = 2;
      ends_[end].rails->tell(ends_[1 - end].rails);
      setup.rail_opener = ends_[end].rails;
      if (choice != nullptr) setup.choice = choice();
      ends_[end].choice = setup.choice.get();
      if (opener) setup.rail_opener = opener(end, ends_[end].host->pipes());
      ends_[end].link = ends_[end].domain->add(std::move(setup)).value();
      const std::lock_guard lock(ends_[end].domain->lock());
      ends_[end].link->enter(kRailsGroup, ends_[end].frames, 0, 0);
    }
  }
  ~TcpRails() override {
    for (RailEnd& end : ends_) {
      const std::lock_guard lock(end.domain->lock());
      end.link->leave(kRailsGroup);
    }
    for (RailEnd& end : ends_) end.domain->hurry(true);
  }

  std::unique_ptr<RdmaHost> make_host(std::vector<std::string> devices, const char* setting) {
    return std::make_unique<RdmaHost>(*fabric_, std::move(devices), rdma::QueuePairPath{}, nullptr, setting);
  }
  void go_on() {
    if (drive_ == FakeFabric::Drive::by_hand) fabric_->run();
  }
  // A rail for that place. False: no pair of ports works.
  bool open_rail(std::size_t rail) {
    const std::size_t path = 1 + rail;
    std::vector<const BytePipe*> beside;
    std::unique_lock here(ends_[0].domain->lock());
    std::unique_lock there(ends_[1].domain->lock());
    if (const BytePipe* const other = ends_[0].link->rail(3 - path); other != nullptr) beside.push_back(other);
    auto [one, other] = support::connect_pipes(
        ends_[0].host->pipes(), ends_[1].host->pipes(), [this] { go_on(); }, beside);
    if (one == nullptr || other == nullptr) return false;
    ++attempt_;
    EXPECT_TRUE(ends_[0].domain->take_path(*ends_[0].link, path, PathPipe(std::move(one)), attempt_));
    EXPECT_TRUE(ends_[1].domain->take_path(*ends_[1].link, path, PathPipe(std::move(other)), attempt_));
    here.unlock();
    there.unlock();
    pump();
    return true;
  }
  // At random: a completion fails, a port goes down and comes back, or nothing.
  void break_a_rail_or_none() {
    const std::string port = random_() % 2 == 0 ? "a0" : "b0";
    switch (random_() % 3) {
      case 0:
        fabric_->fail_completion(rdma::CompletionStatus::retry_exceeded, random_() % 20);
        break;
      case 1:
        fabric_->set_port(port, 1, rdma::PortState::down);
        for (RailEnd& end : ends_) end.domain->prepare_to_sleep();
        fabric_->set_port(port, 1, rdma::PortState::active);
        break;
      default:
        break;
    }
  }
  void pump() {
    for (RailEnd& end : ends_) end.domain->pump();
  }
  template <class Condition>
  bool run_until(const Condition& condition) {
    const Deadline until = Deadline::after_ms(120'000);  // fake devices are slow under a sanitizer
    while (!until.passed()) {
      go_on();
      pump();
      if (condition()) return true;
      sched_yield();
    }
    return false;
  }
  // Frames of random sizes. Returns what they hold, by mark.
  std::map<std::uint64_t, std::string> queue(std::size_t from, std::size_t bytes, std::size_t longest) {
    std::map<std::uint64_t, std::string> expected;
    const auto buffer = std::make_shared<Buffer>(bytes);
    for (std::byte& each : buffer->bytes) each = static_cast<std::byte>(random_());
    const std::lock_guard lock(ends_[from].domain->lock());
    for (std::size_t at = 0; at < bytes;) {
      Frame frame;
      frame.set_kind(FrameKind::data);
      frame.peer_group = kRailsGroup;
      frame.mark = ++mark_;
      frame.length = static_cast<std::uint32_t>(std::min(1 + random_() % longest, bytes - at));
      const std::byte* const data = buffer->bytes.data() + at;
      ends_[from].link->queue({frame, data, {buffer, &buffer->lender}, &buffer->unwritten});
      expected[mark_].assign(reinterpret_cast<const char*>(data), frame.length);
      at += frame.length;
    }
    buffers_.push_back(buffer);
    ends_[from].domain->note_output();
    return expected;
  }
  bool arrive(std::size_t to, const std::map<std::uint64_t, std::string>& expected) {
    return run_until([&] { return ends_[to].frames.whole == expected; });
  }
  [[nodiscard]] std::vector<std::string> ways() const {
    std::vector<std::string> all;
    for (const OpenSocket& one : ends_[0].link->open_sockets()) all.push_back(one.way);
    return all;
  }
  bool settle() {
    return run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); });
  }
  [[nodiscard]] bool on_rails(std::size_t end) const { return ends_[end].link->route() == 0; }

  const std::uint64_t seed_ = testing::chosen_seed();
  std::unique_ptr<FakeFabric> fabric_;
  const FakeFabric::Drive drive_;
  RailEnd ends_[2];
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::uint32_t attempt_ = 0;
  std::uint64_t mark_ = 0;
  std::mt19937_64 random_{seed_};
};

}  // namespace seto::support
