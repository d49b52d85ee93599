#include "tests/support/tcp_peer_groups.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/support/cut_wires.h"
#include "tests/support/flows.h"
#include "tests/support/named_memory_resource.h"
#include "tests/support/pumped_peer_group.h"
#include "tests/support/rdma_hosts.h"
#include "tests/support/seed.h"
#include "transports/tcp/streams/tcp_peer_group.h"

namespace seto::support {
namespace {

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

PrivateFd ready(int fd) {
  const int one = 1;
  must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
  return PrivateFd(Fd(fd));
}

class TcpMember;
class RailBreaks;

// The members of a job, which delivers status messages at once.
struct Job {
  std::mutex mutex;
  std::vector<TcpMember*> members;  // null: closed
  std::unique_ptr<CutWires> wires;  // null: sockets are connected without them
  // Null: links have no rails. Devices outlive the domains.
  std::unique_ptr<FakeFabric> fabric;
  std::vector<std::unique_ptr<RdmaHost>> hosts;  // by member
  std::shared_ptr<RailBreaks> rails;
};

class TcpMember final : public PeerGroupMember {
 public:
  TcpMember(std::shared_ptr<Job> job, std::uint32_t index) : job_(std::move(job)), index_(index) {
    domain_ = tcp::Domain::create().value();
    if (job_->fabric != nullptr) must(domain_->use_pipes(&job_->hosts[index]->pipes()).ok(), "pipes");
    must(wakeup_.valid(), "eventfd");
  }
  ~TcpMember() override {
    const std::lock_guard lock(job_->mutex);
    job_->members[index_] = nullptr;
  }
  // On the thread of the wires, with the lock of the job.
  void take_path(tcp::Link& link, std::size_t path, SecureStream socket, std::uint32_t attempt) {
    {
      const std::lock_guard lock(domain_->lock());
      domain_->take_path(link, path, std::move(socket), attempt);
    }
    must(eventfd_write(wakeup_.get(), 1) == 0, "eventfd_write");
  }

  void join(std::vector<std::shared_ptr<tcp::Link>> links, std::uint32_t peer_groups);
  void wake() { must(eventfd_write(wakeup_.get(), 1) == 0, "eventfd_write"); }

  [[nodiscard]] tcp::Domain& domain() { return *domain_; }
  // As the background thread of a context does when no call is active: queued frames must not wait for the next call, and what
  // arrives is acknowledged as long as others send.
  void write_queued(std::atomic<std::size_t>& busy, std::atomic<std::size_t>& unsettled) {
    while (busy.load() > 0) {
      arm();
      (void)await_wakeup(1);
    }
    bool settled = false;
    EXPECT_TRUE(eventually([&] {
      domain_->pump();
      if (!settled && !domain_->unsent()) {
        settled = true;
        --unsettled;
      }
      return unsettled.load() == 0;
    })) << "member "
        << index_ << " or another could not write what it had queued";
  }
  [[nodiscard]] std::uint32_t index() const override { return index_; }
  [[nodiscard]] PeerGroup& peer_group(std::size_t which) override;
  void close(std::size_t which) override;
  [[nodiscard]] std::size_t leased() const override { return domain_->buffers().in_use(); }

  void arm() override {
    domain_->prepare_to_sleep();
    domain_->pump();
  }
  void disarm() override {}
  void attend() override {
    if (domain_->unsent()) domain_->pump();
  }
  bool await_wakeup(int milliseconds) override {
    std::array<pollfd, 2> wakeups{pollfd{domain_->descriptor(), POLLIN, 0}, pollfd{wakeup_.get(), POLLIN, 0}};
    const bool rung = poll(wakeups.data(), wakeups.size(), milliseconds) > 0;
    eventfd_t count = 0;
    if (wakeups[1].revents != 0) (void)eventfd_read(wakeup_.get(), &count);
    return rung;
  }
  [[nodiscard]] bool shares_memory() const override { return false; }
  // Devices read it where it lies.
  [[nodiscard]] std::pmr::memory_resource& lendable_memory() override {
    return job_->fabric != nullptr ? named_ : PeerGroupMember::lendable_memory();
  }
  void damage(const DamagedStream&) override {}
  void damage(const DamagedMessage&) override {}

 private:
  class StatusExchange final : public tcp::StatusExchange {
   public:
    StatusExchange(TcpMember& owner, std::size_t which) : owner_(owner), which_(which) {}
    void ask(std::uint32_t member) override { carry(member, owner_.index_); }
    void announce() override {
      for (std::uint32_t member = 0; member < owner_.job_->members.size(); ++member)
        if (member != owner_.index_) carry(owner_.index_, member);
    }

   private:
    void carry(std::uint32_t from, std::uint32_t to) {
      const std::lock_guard lock(owner_.job_->mutex);
      TcpMember* const source = owner_.job_->members[from];
      TcpMember* const target = owner_.job_->members[to];
      if (source == nullptr || target == nullptr || from == to) return;
      if (which_ >= source->peer_groups_.size() || which_ >= target->peer_groups_.size()) return;
      if (source->peer_groups_[which_] == nullptr || target->peer_groups_[which_] == nullptr) return;
      ASSERT_TRUE(target->peer_groups_[which_]->renew(from, source->peer_groups_[which_]->record()).ok());
      must(eventfd_write(target->wakeup_.get(), 1) == 0, "eventfd_write");
    }

    TcpMember& owner_;
    std::size_t which_;
  };

  std::shared_ptr<Job> job_;
  std::uint32_t index_;
  NamedMemoryResource named_;
  std::unique_ptr<tcp::Domain> domain_;
  Fd wakeup_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};  // signalled when a status message arrives
  std::vector<std::unique_ptr<StatusExchange>> exchanges_;
  std::vector<std::unique_ptr<tcp::TcpPeerGroup>> peer_groups_;
  std::vector<std::unique_ptr<PumpedPeerGroup>> pumped_;
};

PeerGroup& TcpMember::peer_group(std::size_t which) { return *pumped_[which]; }

void TcpMember::close(std::size_t which) {
  const std::lock_guard lock(job_->mutex);
  pumped_[which].reset();
  peer_groups_[which].reset();
}

void TcpMember::join(std::vector<std::shared_ptr<tcp::Link>> links, std::uint32_t peer_groups) {
  for (std::uint32_t i = 0; i < peer_groups; ++i) {
    exchanges_.push_back(std::make_unique<StatusExchange>(*this, i));
    tcp::PeerGroupSetup setup{index_, 1000 + i, links, domain_.get(), exchanges_.back().get()};
    peer_groups_.push_back(tcp::TcpPeerGroup::create(std::move(setup)).value());
    pumped_.push_back(std::make_unique<PumpedPeerGroup>(*peer_groups_.back(), [this] { domain_->pump(); }));
  }
}

// The wires dial.
class NoDialer final : public tcp::PathDialer {
 public:
  void paths_broke() override {}
  void give_up() override {}
};

// The two ends of one link.
struct CutLink {
  std::uint32_t members[2];
  std::weak_ptr<tcp::Link> links[2];
};

// False: one of the members is gone, or its link.
bool renew(Job& job, const CutLink& cut, std::size_t path, CutWires::Ends ends, std::uint32_t attempt) {
  const std::lock_guard lock(job.mutex);
  SecureStream* const sockets[2] = {&ends.one, &ends.other};
  std::shared_ptr<tcp::Link> links[2];
  for (std::size_t end = 0; end < 2; ++end) {
    links[end] = cut.links[end].lock();
    if (job.members[cut.members[end]] == nullptr || links[end] == nullptr || links[end]->broken()) return false;
  }
  for (std::size_t end = 0; end < 2; ++end)
    job.members[cut.members[end]]->take_path(*links[end], path, std::move(*sockets[end]), attempt);
  return true;
}

void encrypt(SecureStream& one, SecureStream& other) {
  const Secret key = Secret::random();
  must(one.encrypt(TlsSession::Role::caller, key).ok() && other.encrypt(TlsSession::Role::answerer, key).ok(), "TLS");
  const Deadline until = Deadline::after_ms(60'000);
  for (bool here = false, there = false; !here || !there;) {
    must(!until.passed(), "the handshake of TLS");
    here = one.advance().value();
    there = other.advance().value();
  }
}

// Opens a rail for each link, breaks rails at random moments, and opens them again.
class RailBreaks final {
 public:
  RailBreaks(Job& job, std::uint64_t seed) : job_(job), random_(seed) {}
  ~RailBreaks() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void add(std::shared_ptr<CutLink> link) { links_.push_back(std::move(link)); }
  void start() {
    for (const auto& link : links_) open(*link);
    thread_ = std::thread([this] {
      while (!over_) {
        break_one();
        (void)poll(nullptr, 0, static_cast<int>(random_() % 4));
        for (const auto& link : links_) open(*link);
      }
    });
  }

 private:
  void break_one() {
    const std::string host = "host" + std::to_string(random_() % job_.hosts.size());
    if (random_() % 2 == 0) return job_.fabric->fail_completion(rdma::CompletionStatus::retry_exceeded, random_() % 20);
    job_.fabric->set_port(host, 1, rdma::PortState::down);
    job_.fabric->set_port(host, 1, rdma::PortState::active);
  }
  void open(const CutLink& cut) {
    const std::lock_guard lock(job_.mutex);
    TcpMember* const members[2] = {job_.members[cut.members[0]], job_.members[cut.members[1]]};
    const std::shared_ptr<tcp::Link> links[2] = {cut.links[0].lock(), cut.links[1].lock()};
    for (std::size_t end = 0; end < 2; ++end)
      if (members[end] == nullptr || links[end] == nullptr || links[end]->broken()) return;
    {
      const std::lock_guard one(members[0]->domain().lock());
      const std::lock_guard other(members[1]->domain().lock());
      constexpr std::size_t kPath = 1;
      if (!links[0]->wants_rail(kPath) && !links[1]->wants_rail(kPath)) return;
      PipePair pair = connect_pipes(job_.hosts[cut.members[0]]->pipes(), job_.hosts[cut.members[1]]->pipes(), sched_yield);
      if (pair.first == nullptr || pair.second == nullptr) return;
      ++attempt_;
      (void)members[0]->domain().take_path(*links[0], kPath, tcp::PathPipe(std::move(pair.first)), attempt_);
      (void)members[1]->domain().take_path(*links[1], kPath, tcp::PathPipe(std::move(pair.second)), attempt_);
    }
    for (TcpMember* const member : members) member->wake();
  }

  Job& job_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<CutLink>> links_;
  std::uint32_t attempt_ = 0;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

class TcpTransport final : public PeerGroupTransport {
 public:
  TcpTransport(const char* name, std::size_t sockets, std::uint32_t round_trip_us, bool encrypted = false, bool cut = false,
               bool rails = false)
      : name_(name), sockets_(sockets), round_trip_us_(round_trip_us), encrypted_(encrypted), cut_(cut), rails_(rails) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::vector<std::uint32_t> boundaries() const override {
    std::vector<std::uint32_t> sizes;
    for (const std::size_t size : {tcp::kStripe, tcp::kFrameLimit})
      for (const std::size_t more : {0, 1}) sizes.push_back(static_cast<std::uint32_t>(size + more));
    return sizes;
  }
  [[nodiscard]] std::vector<std::unique_ptr<PeerGroupMember>> make_all(const PeerGroupsWanted& wanted) const {
    auto job = std::make_shared<Job>();
    if (cut_) {
      static std::atomic<std::uint64_t> seed = testing::chosen_seed();
      job->wires = std::make_unique<CutWires>(seed.fetch_add(1), encrypted_);
    }
    if (rails_) add_hosts(*job, wanted.members);
    std::vector<std::unique_ptr<TcpMember>> made;
    std::vector<std::vector<std::shared_ptr<tcp::Link>>> links(wanted.members);
    for (std::uint32_t i = 0; i < wanted.members; ++i) {
      made.push_back(std::make_unique<TcpMember>(job, i));
      job->members.push_back(made.back().get());
      links[i].resize(wanted.members);
    }
    for (std::uint32_t a = 0; a < wanted.members; ++a)
      for (std::uint32_t b = a + 1; b < wanted.members; ++b) {
        tcp::Link::Setup of_a;
        tcp::Link::Setup of_b;
        const auto cut = std::make_shared<CutLink>(CutLink{{a, b}, {}});
        if (cut_) of_a.dialer = of_b.dialer = std::make_shared<NoDialer>();
        of_a.session = of_b.session = Secret::random();
        of_a.round_trip_us = of_b.round_trip_us = round_trip_us_;
        of_a.patience_ms = of_b.patience_ms = 60'000;
        of_a.continues = of_b.continues = round_trip_us_ > 0 || rails_;
        of_a.rails = of_b.rails = rails_ ? 1 : 0;
        if (rails_) job->rails->add(cut);
        for (std::size_t i = 0; i < sockets_; ++i) {
          if (cut_) {
            auto [one, other] = job->wires->add([raw = job.get(), cut, i](CutWires::Ends ends, std::uint32_t attempt) {
              return renew(*raw, *cut, i, std::move(ends), attempt);
            });
            of_a.sockets.push_back(std::move(one));
            of_b.sockets.push_back(std::move(other));
            continue;
          }
          auto [one, other] = connected_over_loopback();
          of_a.sockets.emplace_back(std::move(one));
          of_b.sockets.emplace_back(std::move(other));
          if (encrypted_) encrypt(of_a.sockets.back(), of_b.sockets.back());
        }
        links[a][b] = made[a]->domain().add(std::move(of_a)).value();
        links[b][a] = made[b]->domain().add(std::move(of_b)).value();
        cut->links[0] = links[a][b];
        cut->links[1] = links[b][a];
      }
    std::vector<std::unique_ptr<PeerGroupMember>> members;
    for (std::uint32_t i = 0; i < wanted.members; ++i) {
      made[i]->join(links[i], wanted.peer_groups);
      members.push_back(std::move(made[i]));
    }
    if (cut_) job->wires->start();
    if (rails_) job->rails->start();
    return members;
  }
  [[nodiscard]] std::vector<std::unique_ptr<PeerGroupMember>> make(const PeerGroupsWanted& wanted) const override {
    std::vector<std::unique_ptr<PeerGroupMember>> members = make_all(wanted);
    // One end closes after the other, and no end is left to read, so none waits for an acknowledgement of its last messages.
    for (const auto& member : members) static_cast<TcpMember&>(*member).domain().hurry(true);
    return members;
  }
  [[nodiscard]] bool run(const PeerGroupsWanted& wanted, const Body& body) const override {
    auto members = make_all(wanted);
    std::vector<std::thread> threads;
    std::atomic<std::size_t> busy = members.size(), unsettled = members.size();
    for (const auto& member : members)
      threads.emplace_back([&, member = member.get()] {
        body(*member);
        --busy;
        static_cast<TcpMember&>(*member).write_queued(busy, unsettled);
      });
    for (std::thread& thread : threads) thread.join();
    // Each end delivers its sent messages before it closes, and needs the other end for that.
    std::vector<std::thread> endings;
    for (auto& member : members) endings.emplace_back([&member] { member.reset(); });
    for (std::thread& thread : endings) thread.join();
    return true;
  }

 private:
  static void add_hosts(Job& job, std::uint32_t members) {
    static std::atomic<std::uint64_t> seed = testing::chosen_seed();
    job.fabric = std::make_unique<FakeFabric>(seed.fetch_add(1), FakeFabric::Drive::by_thread);
    for (std::uint32_t index = 0; index < members; ++index) {
      const std::string name = "host" + std::to_string(index);
      job.fabric->add_ethernet(name, "10.0.0." + std::to_string(index + 1));
      job.hosts.push_back(std::make_unique<RdmaHost>(*job.fabric, std::vector<std::string>{name}));
    }
    job.rails = std::make_shared<RailBreaks>(job, seed.fetch_add(1));
  }

  const char* name_;
  std::size_t sockets_;
  std::uint32_t round_trip_us_;
  bool encrypted_;
  bool cut_;
  bool rails_;
};

}  // namespace

std::pair<PrivateFd, PrivateFd> connected_over_loopback() {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  must(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  must(listen(listener.get(), 1) == 0, "listen");
  must(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  Fd caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  must(connect(caller.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
  const int answerer = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  must(answerer >= 0, "accept");
  return {ready(dup(caller.get())), ready(answerer)};
}

const PeerGroupTransport& tcp_transport(std::size_t sockets) {
  static const TcpTransport one("tcp", 1, 0);
  static const TcpTransport three("tcp_3_sockets", 3, 0);
  return sockets == 1 ? one : three;
}

const PeerGroupTransport& tls_transport(std::size_t sockets) {
  static const TcpTransport one("tls", 1, 0, true);
  static const TcpTransport four("tls_far", 4, 60'000, true);
  return sockets == 1 ? one : four;
}

const PeerGroupTransport& cut_transport(bool encrypted) {
  static const TcpTransport plain("tcp_cut", 3, 60'000, false, true);
  static const TcpTransport tls("tls_cut", 3, 60'000, true, true);
  return encrypted ? tls : plain;
}

const PeerGroupTransport& cut_rails_transport() {
  static const TcpTransport rails("rdma_cut", 1, 0, false, false, true);
  return rails;
}

const PeerGroupTransport& far_tcp_transport() {
  static const TcpTransport far("tcp_far", 4, 60'000);
  return far;
}

}  // namespace seto::support
