#include "tests/support/tcp_peer_groups.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "transports/tcp/tcp_peer_group.h"

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

// Two ends of one connection.
std::pair<PrivateFd, PrivateFd> connected() {
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

class TcpMember;

// The members of a job, which carries bulletins at once.
struct Job {
  std::mutex mutex;
  std::vector<TcpMember*> members;  // null: gone
};

// A circle whose owner pumps before each look, as the holder of a context's token does.
class PumpedCircle;

class TcpMember final : public CircleMember {
 public:
  TcpMember(std::shared_ptr<Job> job, std::uint32_t index) : job_(std::move(job)), index_(index) {
    domain_ = tcp::Domain::create().value();
    must(bell_.valid(), "eventfd");
  }
  ~TcpMember() override {
    const std::lock_guard lock(job_->mutex);
    job_->members[index_] = nullptr;
  }

  void join(std::vector<std::shared_ptr<tcp::Link>> links, std::uint32_t circles);

  [[nodiscard]] tcp::Domain& domain() { return *domain_; }
  [[nodiscard]] std::uint32_t index() const override { return index_; }
  [[nodiscard]] Circle& circle(std::size_t which) override;
  void close(std::size_t which) override;
  [[nodiscard]] std::size_t leased() const override { return domain_->landing().in_use(); }
  std::byte* shared_memory(std::size_t) override { return nullptr; }

  void arm() override {
    domain_->prepare_to_sleep();
    domain_->pump();
  }
  void disarm() override {}
  bool await_bell(int milliseconds) override {
    std::array<pollfd, 2> bells{pollfd{domain_->descriptor(), POLLIN, 0}, pollfd{bell_.get(), POLLIN, 0}};
    const bool rung = poll(bells.data(), bells.size(), milliseconds) > 0;
    eventfd_t count = 0;
    if (bells[1].revents != 0) (void)eventfd_read(bell_.get(), &count);
    return rung;
  }
  [[nodiscard]] bool shares_memory() const override { return false; }
  void damage(const DamagedStream&) override {}
  void damage(const DamagedMessage&) override {}

 private:
  class Herald final : public tcp::Herald {
   public:
    Herald(TcpMember& owner, std::size_t which) : owner_(owner), which_(which) {}
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
      if (which_ >= source->circles_.size() || which_ >= target->circles_.size()) return;
      if (source->circles_[which_] == nullptr || target->circles_[which_] == nullptr) return;
      ASSERT_TRUE(target->circles_[which_]->renew(from, source->circles_[which_]->bulletin()).ok());
      must(eventfd_write(target->bell_.get(), 1) == 0, "eventfd_write");
    }

    TcpMember& owner_;
    std::size_t which_;
  };

  std::shared_ptr<Job> job_;
  std::uint32_t index_;
  std::unique_ptr<tcp::Domain> domain_;
  Fd bell_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};  // rung when news has come
  std::vector<std::unique_ptr<Herald>> heralds_;
  std::vector<std::unique_ptr<tcp::TcpCircle>> circles_;
  std::vector<std::unique_ptr<PumpedCircle>> pumped_;
};

class PumpedSender final : public SendStream {
 public:
  PumpedSender(std::unique_ptr<SendStream> stream, tcp::Domain& domain) : stream_(std::move(stream)), domain_(domain) {}
  std::byte* acquire(Mark mark) override {
    domain_.pump();
    return stream_->acquire(mark);
  }
  [[nodiscard]] bool asks_size() const override { return stream_->asks_size(); }
  void tell_size(Mark mark, std::size_t size) override { stream_->tell_size(mark, size); }
  void commit(Mark mark) override { stream_->commit(mark); }
  [[nodiscard]] bool lends() const override { return stream_->lends(); }
  bool lend(Mark mark, const std::byte* first, std::size_t stride) override {
    domain_.pump();
    return stream_->lend(mark, first, stride);
  }
  [[nodiscard]] bool taken(std::uint64_t operation) override {
    domain_.pump();
    return stream_->taken(operation);
  }
  bool revoke(std::uint64_t operation) override { return stream_->revoke(operation); }

 private:
  std::unique_ptr<SendStream> stream_;
  tcp::Domain& domain_;
};

class PumpedReceiver final : public ReceiveStream {
 public:
  PumpedReceiver(std::unique_ptr<ReceiveStream> stream, tcp::Domain& domain) : stream_(std::move(stream)), domain_(domain) {}
  const std::byte* front(Mark mark) override {
    domain_.pump();
    return stream_->front(mark);
  }
  [[nodiscard]] bool asks_size() const override { return stream_->asks_size(); }
  bool brings(Mark mark, std::size_t size) override { return stream_->brings(mark, size); }
  void release(Mark mark) override { stream_->release(mark); }
  [[nodiscard]] bool places() const override { return stream_->places(); }
  void place(const Placement& placement) override { stream_->place(placement); }
  void displace(std::uint64_t operation) override { stream_->displace(operation); }

 private:
  std::unique_ptr<ReceiveStream> stream_;
  tcp::Domain& domain_;
};

class PumpedPairSender final : public PairSender {
 public:
  PumpedPairSender(std::unique_ptr<PairSender> pair, tcp::Domain& domain) : pair_(std::move(pair)), domain_(domain) {}
  [[nodiscard]] std::uint64_t current() const override { return pair_->current(); }
  PairPiece acquire(const Letter& letter) override {
    domain_.pump();
    return pair_->acquire(letter);
  }
  bool commit() override { return pair_->commit(); }
  [[nodiscard]] Letter other_end() const override { return pair_->other_end(); }

 private:
  std::unique_ptr<PairSender> pair_;
  tcp::Domain& domain_;
};

class PumpedPairReceiver final : public PairReceiver {
 public:
  PumpedPairReceiver(std::unique_ptr<PairReceiver> pair, tcp::Domain& domain) : pair_(std::move(pair)), domain_(domain) {}
  [[nodiscard]] std::uint64_t current() const override { return pair_->current(); }
  PairPiece front(const Letter& letter) override {
    domain_.pump();
    return pair_->front(letter);
  }
  bool release() override { return pair_->release(); }
  [[nodiscard]] Letter other_end() const override { return pair_->other_end(); }
  [[nodiscard]] bool knocks() const override {
    domain_.pump();
    return pair_->knocks();
  }
  [[nodiscard]] Letter at_the_door() const override { return pair_->at_the_door(); }

 private:
  std::unique_ptr<PairReceiver> pair_;
  tcp::Domain& domain_;
};

class PumpedCircle final : public Circle {
 public:
  PumpedCircle(Circle& circle, tcp::Domain& domain) : circle_(circle), domain_(domain) {}

  [[nodiscard]] std::uint32_t members() const override { return circle_.members(); }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry& geometry) override {
    SETO_ASSIGN(auto stream, circle_.open_send(address, receivers, geometry));
    return std::unique_ptr<SendStream>(new PumpedSender(std::move(stream), domain_));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) override {
    SETO_ASSIGN(auto stream, circle_.open_receive(address, geometry));
    return std::unique_ptr<ReceiveStream>(new PumpedReceiver(std::move(stream), domain_));
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override {
    SETO_ASSIGN(auto pair, circle_.open_pair_send(receiver));
    return std::unique_ptr<PairSender>(new PumpedPairSender(std::move(pair), domain_));
  }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override {
    SETO_ASSIGN(auto pair, circle_.open_pair_receive(sender));
    return std::unique_ptr<PairReceiver>(new PumpedPairReceiver(std::move(pair), domain_));
  }
  void begin(const Note& note) override { circle_.begin(note); }
  void disregard(std::uint64_t operation) override { circle_.disregard(operation); }
  void complete(std::uint64_t operation) override { circle_.complete(operation); }
  [[nodiscard]] std::uint64_t window() const override { return circle_.window(); }
  bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const override {
    domain_.pump();
    return circle_.note_of(member, operation, note);
  }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override {
    domain_.pump();
    (void)circle_.completed_by(member);  // asks
    return circle_.completed_by(member);
  }
  void leave(Fate fate) override { circle_.leave(fate); }
  [[nodiscard]] Fate fate_of(std::uint32_t member) const override { return circle_.fate_of(member); }
  [[nodiscard]] bool silent(std::uint32_t member) const override { return circle_.silent(member); }
  void explain(std::string_view why) override { circle_.explain(why); }
  [[nodiscard]] std::string explanation_of(std::uint32_t member) const override { return circle_.explanation_of(member); }
  [[nodiscard]] Status failure() const override { return circle_.failure(); }
  [[nodiscard]] bool suspects() const override { return circle_.suspects(); }

 private:
  Circle& circle_;
  tcp::Domain& domain_;
};

Circle& TcpMember::circle(std::size_t which) { return *pumped_[which]; }

void TcpMember::close(std::size_t which) {
  const std::lock_guard lock(job_->mutex);
  pumped_[which].reset();
  circles_[which].reset();
}

void TcpMember::join(std::vector<std::shared_ptr<tcp::Link>> links, std::uint32_t circles) {
  for (std::uint32_t i = 0; i < circles; ++i) {
    heralds_.push_back(std::make_unique<Herald>(*this, i));
    tcp::CircleSetup setup{index_, 1000 + i, links, domain_.get(), heralds_.back().get()};
    circles_.push_back(tcp::TcpCircle::create(std::move(setup)).value());
    pumped_.push_back(std::make_unique<PumpedCircle>(*circles_.back(), *domain_));
  }
}

class TcpTransport final : public CircleTransport {
 public:
  TcpTransport(const char* name, std::size_t sockets) : name_(name), sockets_(sockets) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::vector<std::uint32_t> boundaries() const override {
    return {static_cast<std::uint32_t>(tcp::kFrameLimit), static_cast<std::uint32_t>(tcp::kFrameLimit) + 1};
  }
  [[nodiscard]] static std::vector<std::unique_ptr<CircleMember>> make_all(const CirclesWanted& wanted, std::size_t sockets) {
    auto job = std::make_shared<Job>();
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
        of_a.session = of_b.session = Secret::random();
        for (std::size_t i = 0; i < sockets; ++i) {
          auto [one, other] = connected();
          of_a.sockets.push_back(std::move(one));
          of_b.sockets.push_back(std::move(other));
        }
        links[a][b] = made[a]->domain().add(std::move(of_a)).value();
        links[b][a] = made[b]->domain().add(std::move(of_b)).value();
      }
    std::vector<std::unique_ptr<CircleMember>> members;
    for (std::uint32_t i = 0; i < wanted.members; ++i) {
      made[i]->join(links[i], wanted.circles);
      members.push_back(std::move(made[i]));
    }
    return members;
  }
  [[nodiscard]] std::vector<std::unique_ptr<CircleMember>> make(const CirclesWanted& wanted) const override {
    auto members = make_all(wanted, sockets_);
    // One end after the other, and nobody is left to read: none waits to see its last words acknowledged.
    for (const auto& member : members) static_cast<TcpMember&>(*member).domain().hurry(true);
    return members;
  }
  [[nodiscard]] bool run(const CirclesWanted& wanted, const Body& body) const override {
    auto members = make_all(wanted, sockets_);
    std::vector<std::thread> threads;
    for (const auto& member : members) threads.emplace_back([&body, &member] { body(*member); });
    for (std::thread& thread : threads) thread.join();
    // Each end delivers what it has sent before it closes, and needs the other for that.
    std::vector<std::thread> endings;
    for (auto& member : members) endings.emplace_back([&member] { member.reset(); });
    for (std::thread& thread : endings) thread.join();
    return true;
  }

 private:
  const char* name_;
  std::size_t sockets_;
};

}  // namespace

const CircleTransport& tcp_transport(std::size_t sockets) {
  static const TcpTransport one("tcp", 1);
  static const TcpTransport three("tcp_3_sockets", 3);
  return sockets == 1 ? one : three;
}

}  // namespace seto::support
