#include "tests/support/context_peer_groups.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "src/control/local/local_connector.h"
#include "src/core/connect/transport_list.h"
#include "tests/support/flows.h"
#include "tests/support/pumped_peer_group.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"
#include "transports/moving_way.h"
#include "transports/tcp/connect/tcp_transport.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kConnectMs = 30'000;

// Numbers of contexts and of attempts, which this process never uses twice.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> next{1'000'000};
  return next.fetch_add(1);
}

void must(const Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, std::string(status.text()).c_str());
  std::abort();
}

template <class T>
T must(Result<T> result, const char* what) {
  must(result.status(), what);
  return std::move(result).value();
}

// Makes the transport of one member.
using MakeTransport = std::function<std::unique_ptr<Transport>(std::uint32_t index, const TransportSetup& setup)>;

class ContextMember final : public PeerGroupMember {
 public:
  ContextMember(std::uint32_t index, const MakeTransport& make, Connect connect)
      : index_(index), place_{"here", {}, next_number()} {
    config_.interface = "lo";
    config_.connect = connect;
    wakeup_ = must(Wakeup::create(), "a wakeup");
    place_.process = must(LocalConnector::of_process(), "a connector")->address();
    transport_ = make(index, {place_.context, &config_, wakeup_});
    endpoint_ = must(transport_->open([] {}), "an endpoint");
    address_ = endpoint_->address(config_);
  }
  // Streams of the peer groups have ended.
  ~ContextMember() override {
    pumped_.clear();
    peer_groups_.clear();
    connections_.clear();
  }

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] std::string_view address() const { return address_; }
  [[nodiscard]] Transport& transport() { return *transport_; }
  std::string reserve_seat(const GroupSize& size) {
    seats_.push_back(must(endpoint_->reserve_seat(size), "a seat"));
    return seats_.back()->announcement();
  }
  void connect(Attempt attempt) {
    attempt.own = index_;
    admission_ = endpoint_->admit(attempt.key);
    for (AttemptMember& member : attempt.members) member.wanted = member.number != index_;
    connections_.resize(attempt.members.size());
    must(endpoint_->connect(attempt, Deadline::after_ms(kConnectMs), connections_), "connections");
  }
  // `seats`: of the members in this group.
  void join(AttemptId attempt, std::size_t which, const std::vector<std::string>& seats) {
    GroupMembers group{attempt, index_, {}};
    for (std::uint32_t member = 0; member < seats.size(); ++member)
      group.members.push_back({connections_[member], seats[member], member});
    peer_groups_.push_back(must(seats_[which]->join(std::move(group)), "a peer group"));
    pumped_.push_back(std::make_unique<PumpedPeerGroup>(*peer_groups_.back(), [this] { transport_->progress(); }));
  }

  [[nodiscard]] std::string way_to(std::uint32_t member) const { return present_way(*connections_[member]); }

  [[nodiscard]] std::uint32_t index() const override { return index_; }
  // Without an event descriptor the transport has nothing to pump, and its streams offer all that they have.
  [[nodiscard]] PeerGroup& peer_group(std::size_t which) override {
    return shares_memory() ? *peer_groups_[which] : *pumped_[which];
  }
  void close(std::size_t which) override {
    pumped_[which].reset();
    peer_groups_[which].reset();
  }
  [[nodiscard]] std::size_t leased() const override { return transport_->memory_use().leased; }

  void before_arm(std::function<void()> call) { before_arm_ = std::move(call); }
  void attend() override {
    if (!shares_memory()) transport_->progress();
  }
  void arm() override {
    if (before_arm_) before_arm_();
    transport_->arm();
    transport_->progress();
  }
  void disarm() override { transport_->disarm(); }
  bool await_wakeup(int milliseconds) override {
    std::array<pollfd, 2> events{pollfd{wakeup_->descriptor(), POLLIN, 0}, pollfd{transport_->event_fd(), POLLIN, 0}};
    const bool woken = poll(events.data(), events.size(), milliseconds) > 0;
    if (events[0].revents != 0) wakeup_->drain();
    return woken;
  }
  // As the background thread of a context does when no call is active: what is queued must not wait for the next call.
  void write_queued(const std::atomic<std::size_t>& busy) {
    if (shares_memory()) return;
    before_arm_ = {};
    while (busy.load() > 0) {
      arm();
      (void)await_wakeup(1);
    }
  }
  [[nodiscard]] bool shares_memory() const override { return transport_->event_fd() < 0; }
  void damage(const DamagedStream&) override {}
  void damage(const DamagedMessage&) override {}

 private:
  const std::uint32_t index_;
  Place place_;
  std::function<void()> before_arm_;
  Config config_;
  std::shared_ptr<const Wakeup> wakeup_;
  std::unique_ptr<Transport> transport_;
  Endpoint* endpoint_ = nullptr;
  std::string address_;
  std::shared_ptr<void> admission_;
  std::vector<std::unique_ptr<PeerGroupSeat>> seats_;
  Connections connections_;
  std::vector<std::shared_ptr<PeerGroup>> peer_groups_;
  std::vector<std::unique_ptr<PumpedPeerGroup>> pumped_;
};

using ContextMembers = std::vector<std::unique_ptr<ContextMember>>;

// Calls `body` for all members at once.
template <class Body>
void for_each_at_once(ContextMembers& members, const Body& body) {
  std::vector<std::thread> threads;
  for (auto& member : members) threads.emplace_back([&body, &member] { body(member); });
  for (std::thread& thread : threads) thread.join();
}

class ContextTransport : public PeerGroupTransport {
 public:
  ContextTransport(std::size_t transport, std::string name, bool on_first_use = false, Connect rails = Connect::automatic)
      : transport_(transport), name_(std::move(name)), on_first_use_(on_first_use), rails_begin_(rails) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::vector<std::uint32_t> boundaries() const override { return {}; }
  // Connections block until the other end is there, so members cannot be made in one thread.
  [[nodiscard]] std::vector<std::unique_ptr<PeerGroupMember>> make(const PeerGroupsWanted&) const override { return {}; }
  [[nodiscard]] bool run(const PeerGroupsWanted& wanted, const Body& body) const override {
    return run_over(wanted, body, [this](std::uint32_t, const TransportSetup& setup) {
      return std::move(must(make_transports(setup), "transports")[transport_]);
    });
  }

 protected:
  // `ready` waits for what the members need beyond their connections.
  [[nodiscard]] bool run_over(const PeerGroupsWanted& wanted, const Body& body, const MakeTransport& make,
                              const std::function<void(ContextMembers&)>& ready = {}) const {
    ContextMembers members;
    for (std::uint32_t index = 0; index < wanted.members; ++index)
      members.push_back(std::make_unique<ContextMember>(index, make, rails_begin_));
    connect(members, on_first_use_, bool(ready));
    join(members, wanted);
    if (ready) ready(members);
    std::atomic<std::size_t> busy = members.size();
    for_each_at_once(members, [&](const auto& member) {
      body(*member);
      --busy;
      member->write_queued(busy);
    });
    // Each end delivers what it has sent before it closes, and needs the other for that.
    for_each_at_once(members, [](auto& member) { member.reset(); });
    return true;  // a failed expectation of a thread fails the test by itself
  }

 private:
  static void connect(ContextMembers& members, bool on_first_use, bool same_site) {
    Attempt attempt;
    attempt.on_first_use = on_first_use;
    attempt.id = next_number();
    attempt.key = Secret::random();
    for (const auto& member : members)
      attempt.members.push_back({member->index(), &member->place(), member->address(), {}, false, same_site});
    for_each_at_once(members, [&attempt](const auto& member) { member->connect(attempt); });
  }
  static void join(ContextMembers& members, const PeerGroupsWanted& wanted) {
    const GroupSize size{static_cast<int>(wanted.members), static_cast<int>(std::max(wanted.ports / 2, wanted.members))};
    for (std::size_t which = 0; which < wanted.peer_groups; ++which) {
      std::vector<std::string> seats;
      for (const auto& member : members) seats.push_back(member->reserve_seat(size));
      const AttemptId attempt = next_number();
      for (const auto& member : members) member->join(attempt, which, seats);
    }
  }

  const std::size_t transport_;
  const std::string name_;
  const bool on_first_use_;
  const Connect rails_begin_;
};

// RDMA between hosts of one device each (shared: two), all of them fake.
class RdmaTransport final : public ContextTransport {
 public:
  RdmaTransport(const char* name, Rails rails)
      : ContextTransport(0, name, rails == Rails::first_use, waits_for_use(rails) ? Connect::automatic : Connect::all),
        rails_(rails) {}

  [[nodiscard]] bool run(const PeerGroupsWanted& wanted, const Body& body) const override {
    static std::atomic<std::uint64_t> seed = testing::chosen_seed();
    FakeFabric fabric(seed.fetch_add(1), FakeFabric::Drive::by_thread);
    std::vector<std::unique_ptr<RdmaHost>> hosts;
    for (std::uint32_t index = 0; index < wanted.members; ++index) {
      std::vector<std::string> devices = {"host" + std::to_string(index)};
      if (rails_ == Rails::shared) devices.push_back(devices[0] + "_second");
      for (std::size_t device = 0; device < devices.size(); ++device)
        fabric.add_ethernet(devices[device], "10." + std::to_string(device) + ".0." + std::to_string(index + 1));
      rdma::PipeTerms terms;
      if (rails_ == Rails::shared) terms.most_queue_pairs = wanted.members - 1;
      hosts.push_back(std::make_unique<RdmaHost>(fabric, std::move(devices), terms));
    }
    const auto keeps_to_share = [&] {
      for (std::uint32_t index = 0; rails_ == Rails::shared && index < wanted.members; ++index)
        EXPECT_LE(fabric.queue_pairs("host" + std::to_string(index)), wanted.members - 1);
    };
    std::atomic<bool> over{false};
    std::thread breaks;
    const bool ran = run_over(
        wanted, [&](PeerGroupMember& member) { run_body(member, wanted.members, body); },
        [&](std::uint32_t index, const TransportSetup& setup) -> std::unique_ptr<Transport> {
          if (rails_ == Rails::but_last && index + 1 == wanted.members) return std::make_unique<tcp::TcpTransport>(setup);
          const auto open = [host = hosts[index].get()] { return Result<std::unique_ptr<PipeMaker>>(host->open()); };
          return std::make_unique<tcp::TcpTransport>(setup, open);
        },
        [&](ContextMembers& members) {
          if (!waits_for_use(rails_)) await_rails(members, keeps_to_share);
          const std::size_t pinned = fabric.registered_bytes();
          EXPECT_EQ(waits_for_use(rails_), pinned == 0) << "an unused connection pins no memory";
          EXPECT_LE(pinned, (std::size_t{1} << 20) * wanted.members * (wanted.members - 1)) << "1 MiB for each end in use";
          if (rails_ == Rails::pulled) pull_in_arm(members, fabric);
          if (rails_ == Rails::cut) breaks = std::thread([&] { break_often(fabric, wanted.members, over); });
        });
    keeps_to_share();
    over = true;
    if (breaks.joinable()) breaks.join();
    // More than each pair of members had at first: some were made again.
    EXPECT_TRUE(rails_ != Rails::cut || fabric.failed() > wanted.members * (wanted.members - 1)) << fabric.failed();
    EXPECT_TRUE(rails_ != Rails::pulled || fabric.failed() > 0) << "none was lost";
    return ran;
  }

 private:
  static bool waits_for_use(Rails rails) { return rails == Rails::first_use || rails == Rails::traffic; }
  void run_body(PeerGroupMember& member, std::uint32_t members, const Body& body) const {
    body(member);
    auto& context = static_cast<ContextMember&>(member);
    if (!waits_for_use(rails_)) return;
    EXPECT_TRUE(eventually([&] {
      context.transport().progress();
      return is_as_wanted(context, members);
    })) << "no rail was opened";
  }
  // Its data takes the medium that both ends have.
  [[nodiscard]] bool is_as_wanted(const ContextMember& one, std::uint32_t members) const {
    bool all = true;
    for (std::uint32_t other = 0; other < members; ++other) {
      const bool without = rails_ == Rails::but_last && std::max(one.index(), other) + 1 == members;
      all = all && (other == one.index() || one.way_to(other).starts_with(without ? "TCP" : "RDMA"));
    }
    return all;
  }
  template <class Look>
  void await_rails(ContextMembers& members, const Look& look) const {
    const auto count = static_cast<std::uint32_t>(members.size());
    EXPECT_TRUE(eventually([&] {
      for (const auto& one : members) one->transport().progress();
      look();
      return std::all_of(members.begin(), members.end(), [&](const auto& one) { return is_as_wanted(*one, count); });
    })) << "no rail was opened";
  }
  static void pull_in_arm(ContextMembers& members, FakeFabric& fabric) {
    for (const auto& member : members)
      member->before_arm([&fabric, host = "host" + std::to_string(member->index())] {
        fabric.set_port(host, 1, rdma::PortState::down);
        fabric.set_port(host, 1, rdma::PortState::active);
      });
  }
  // Until no member is left.
  static void break_often(FakeFabric& fabric, std::uint32_t hosts, const std::atomic<bool>& over) {
    std::mt19937_64 random(testing::chosen_seed());
    while (!over) {
      const std::string host = "host" + std::to_string(random() % hosts);
      if (random() % 2 == 0) {
        fabric.fail_completion(rdma::CompletionStatus::retry_exceeded, random() % 50);
      } else {
        fabric.set_port(host, 1, rdma::PortState::down);
        fabric.set_port(host, 1, rdma::PortState::active);
      }
      (void)poll(nullptr, 0, static_cast<int>(random() % 4));
    }
  }

  const Rails rails_;
};

}  // namespace

std::vector<std::unique_ptr<const PeerGroupTransport>> context_transports() {
  Config config;
  const auto all = must(make_transports({next_number(), &config, must(Wakeup::create(), "a wakeup")}), "transports");
  std::vector<std::unique_ptr<const PeerGroupTransport>> result;
  for (std::size_t index = 0; index < all.size(); ++index) {
    std::string name = std::string("contexts_over_") + all[index]->name();
    std::replace(name.begin(), name.end(), ' ', '_');
    result.push_back(std::make_unique<const ContextTransport>(index, std::move(name)));
  }
  return result;
}

const PeerGroupTransport& rdma_transport(Rails rails) {
  static const RdmaTransport whole("rdma", Rails::whole);
  static const RdmaTransport cut("rdma_cut_contexts", Rails::cut);
  static const RdmaTransport but_last("rdma_but_last", Rails::but_last);
  static const RdmaTransport first_use("rdma_on_first_use", Rails::first_use);
  static const RdmaTransport traffic("rdma_with_traffic", Rails::traffic);
  static const RdmaTransport shared("rdma_shared", Rails::shared);
  static const RdmaTransport pulled("rdma_pulled", Rails::pulled);
  static const RdmaTransport* const all[] = {&whole, &cut, &but_last, &first_use, &traffic, &shared, &pulled};
  return *all[static_cast<std::size_t>(rails)];
}

std::vector<std::unique_ptr<const PeerGroupTransport>> on_first_use_transports() {
  Config config;
  const auto all = must(make_transports({next_number(), &config, must(Wakeup::create(), "a wakeup")}), "transports");
  std::vector<std::unique_ptr<const PeerGroupTransport>> result;
  for (std::size_t index = 0; index < all.size(); ++index)
    if (std::string_view(all[index]->name()) == "TCP")
      result.push_back(std::make_unique<const ContextTransport>(index, "contexts_over_TCP_on_first_use", true));
  return result;
}

}  // namespace seto::support
