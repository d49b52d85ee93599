#include "transports/tcp/connect/link_opener.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/net/congestion.h"
#include "transports/tcp/connect/redialer.h"

namespace seto::tcp {
namespace {

// The first byte of a message between the two ends of a link.
enum class Word : char {
  want = 'w',     // the sender has queued data: dial, if it is your turn
  sockets = 's',  // the dialer opens so many, and whether the link continues when they break: 4 bytes
  failed = 'f',   // the dialer could not open them: the reason follows
  gone = 'g',     // the sender's end was never opened, and has ended
};

constexpr std::size_t kLongestReason = 2'000;
// Links of one context that are needed: fewer are no news.
constexpr std::uint32_t kManyLinks = 64;
// Sockets that a context opens side by side, each on a thread, over all links that are being opened. Without this limit 32
// processes on two cores with 8 sockets a pair (first_use_test.cc under ThreadSanitizer) took 13 s to open them in place of 9,
// because handshakes that wait for a processor are closed as silent and begin again.
constexpr std::size_t kSocketsAtOnce = 32;
// Parts of the number in Word::sockets.
constexpr std::uint32_t kContinues = 1U << 31;
constexpr std::uint32_t kAdapts = 1U << 30;
constexpr std::uint32_t kRoutesShift = 8;  // below it the number of sockets, above it that of routes
constexpr std::uint32_t kRailsShift = 16;  // above it the number of rails

// The contexts of this process that accept sockets; never destroyed, as the connector that calls it.
struct Acceptors {
  std::mutex mutex;
  std::map<std::pair<AttemptId, ContextId>, std::weak_ptr<OnUseLinks>> all;
};

Acceptors& acceptors() {
  static Acceptors* const only = new Acceptors;
  return *only;
}

rlim_t descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Without a descriptor to read /proc with.
std::size_t open_descriptors() {
  const int end = static_cast<int>(std::min<rlim_t>(descriptor_limit(), 65'536));
  std::size_t count = 0;
  for (int fd = 0; fd < end; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

std::string printable(std::string_view bytes) {
  std::string text(bytes.substr(0, kLongestReason));
  for (char& one : text)
    if (one < ' ' || one > '~') one = '?';
  return text;
}

}  // namespace

Secret link_session(const Secret& key, AttemptId attempt, ContextId one, ContextId other) {
  const std::uint64_t words[] = {attempt, std::min(one, other), std::max(one, other)};
  return key.derive("link", {reinterpret_cast<const char*>(words), sizeof words});
}

// Opens one link. The domain's lock covers what is not constant or atomic.
class OnUseOpener final : public LinkOpener, public std::enable_shared_from_this<OnUseOpener> {
 public:
  OnUseOpener(std::shared_ptr<OnUseLinks> all, OnUseLinks::Peer peer, const TcpConnector::Plan& plan)
      : all_(std::move(all)), peer_(std::move(peer)), dials_(plan.calls), process_(plan.remote.process) {}
  ~OnUseOpener() override {
    if (!opened_.load(std::memory_order_relaxed)) tell(Word::gone);
  }

  [[nodiscard]] Status need() override {
    all_->count_needed();
    tell(Word::want);
    if (const Status begun = dial_soon(); !begun.ok()) return named(begun);
    return {};
  }
  void give_up() override { stop_.store(true, std::memory_order_release); }

  void serve(const std::shared_ptr<Link>& link) { link_ = link; }
  // For the link, once it opens.
  void use(std::shared_ptr<LinkRails> rails) { link_rails_ = std::move(rails); }
  // On the control thread.
  void receive(Word word, std::string_view rest);
  void accept(std::uint32_t index, SecureStream socket);
  [[nodiscard]] bool answers(const Claim& claim) const {
    return !dials_ && claim.caller == process_ && claim.caller_context == peer_.context && claim.index < kMostSockets;
  }

 private:
  [[nodiscard]] const OnUseLinks::Setup& setup() const { return all_->setup(); }
  void tell(Word word, std::string_view rest = {}) const;
  [[nodiscard]] Status dial_soon();
  void dial();
  [[nodiscard]] bool is_wanted() const;
  [[nodiscard]] Result<std::vector<SecureStream>> open_sockets();
  // The text names both ranks.
  [[nodiscard]] Status named(const Status& reason, const std::string& advice = {}) const;
  // Tells a person what to do. Not with the domain's lock held: it may count descriptors.
  [[nodiscard]] std::string advice_on(const Status& reason) const;
  // Sockets of a link that continues can be dialed again.
  [[nodiscard]] Status open(Domain& domain, const std::shared_ptr<Link>& link, std::vector<SecureStream> sockets);
  void open_if_complete(Domain& domain, const std::shared_ptr<Link>& link);

  const std::shared_ptr<OnUseLinks> all_;
  const OnUseLinks::Peer peer_;
  const bool dials_;
  const Token process_;
  std::atomic<bool> stop_{false};  // ends the dial
  std::atomic<bool> opened_{false};
  std::weak_ptr<Link> link_;
  bool dialing_ = false;
  std::uint32_t expected_ = 0;                      // sockets that the dialer opens; 0: not known yet
  std::atomic<bool> continues_{false};              // known when they are
  std::uint32_t routes_ = 1;                        // likewise
  std::uint32_t rails_ = 0;                         // likewise
  std::shared_ptr<LinkRails> link_rails_;           // null: there are none
  bool adapts_ = false;                             // likewise
  std::map<std::uint32_t, SecureStream> accepted_;  // by index
};

void OnUseOpener::tell(Word word, std::string_view rest) const {
  std::string message(1, static_cast<char>(word));
  message.append(rest);
  peer_.channel->send_message(setup().attempt, OnUseLinks::handler_of(peer_.number), setup().own, message);
}

Status OnUseOpener::dial_soon() {
  if (!dials_ || std::exchange(dialing_, true)) return {};
  return setup().threads->add([self = shared_from_this()] { self->dial(); });
}

// Dials wait for each other, and meanwhile the link may have broken, or nothing may use it any more.
bool OnUseOpener::is_wanted() const {
  const std::shared_ptr<Domain> domain = setup().domain.lock();
  if (domain == nullptr) return false;
  std::shared_ptr<Link> link;  // outlives the lock: it may hold the last reference
  const std::lock_guard lock(domain->lock());
  link = link_.lock();
  return link != nullptr && !link->broken() && !link->open();
}

// On a thread of its own.
void OnUseOpener::dial() {
  all_->tell_of_many(peer_.wish.sockets(peer_.round_trip_us));
  Result<std::vector<SecureStream>> sockets = is_wanted() ? open_sockets() : failure(Code::aborted, "it had broken before");
  const std::shared_ptr<Domain> domain = setup().domain.lock();
  if (domain == nullptr || setup().threads->stopping().load(std::memory_order_acquire)) return;
  Status outcome = sockets.ok() ? Status() : named(sockets.status(), advice_on(sockets.status()));
  std::shared_ptr<Link> link;  // outlives the lock: it may hold the last reference
  {
    const std::lock_guard lock(domain->lock());
    link = link_.lock();
    if (link == nullptr) return;
    if (outcome.ok()) {
      outcome = open(*domain, link, std::move(sockets).value());
    } else {
      link->break_with(outcome);
    }
  }
  if (!outcome.ok()) tell(Word::failed, outcome.text().substr(0, kLongestReason));
  setup().wakeup->ring();
}

Result<std::vector<SecureStream>> OnUseOpener::open_sockets() {
  const Deadline until = Deadline::after_ms(setup().opening_ms).unless(&stop_).unless(&setup().threads->stopping());
  ConnectRequest request{peer_.address, kPurposeLateData, setup().context, peer_.context, setup().attempt, 0, setup().key,
                         until,         peer_.same_site};
  if (peer_.wish.routes_of(peer_.round_trip_us) > 1) request.path = 1;
  std::vector<SecureStream> sockets(1);
  SETO_ASSIGN(sockets[0], open_tcp_socket(*setup().connector, request));
  std::uint32_t round_trip = round_trip_us(sockets[0].get());
  if (round_trip == 0 || (peer_.round_trip_us != 0 && peer_.round_trip_us < round_trip)) round_trip = peer_.round_trip_us;
  const std::uint32_t count = peer_.wish.sockets(round_trip);
  rails_ = link_rails_ == nullptr ? 0 : peer_.wish.rails(peer_.most_rails, count, round_trip);
  continues_ = rails_ > 0 || peer_.wish.continues(count, round_trip);
  routes_ = peer_.wish.routes_of(round_trip);
  adapts_ = peer_.wish.adapts(count, round_trip);
  const std::uint32_t told =
      count | routes_ << kRoutesShift | rails_ << kRailsShift | (continues_ ? kContinues : 0) | (adapts_ ? kAdapts : 0);
  tell(Word::sockets, {reinterpret_cast<const char*>(&told), sizeof told});
  sockets.resize(count);
  const std::size_t at_once = std::max<std::size_t>(kSocketsAtOnce / std::max<std::size_t>(setup().threads->active(), 1), 1);
  SETO_TRY(side_by_side(count - 1, at_once, [&](std::size_t number, const std::atomic<bool>&) -> Status {
    ConnectRequest next = request;
    next.index = static_cast<std::uint32_t>(number + 1);
    next.path = path_to_request(next.index, count, routes_);
    SETO_ASSIGN(sockets[next.index], open_tcp_socket(*setup().connector, next));
    return {};
  }));
  return sockets;
}

Status OnUseOpener::named(const Status& reason, const std::string& advice) const {
  std::string text = "the data connection of rank " + std::to_string(setup().own) + " to rank " + std::to_string(peer_.number) +
                     ", which is opened on first use, could not be made: " + std::string(reason.text()) + advice;
  return {Code::remote_error, std::move(text)};
}

// Where descriptors are short, many pairs fail at once: they are counted for the first of them only.
std::string OnUseOpener::advice_on(const Status& reason) const {
  if (reason.code() == Code::aborted) return {};
  // The peer's refusal has another code, and says this.
  if (reason.code() != Code::unavailable && reason.text().find("file descriptors") == std::string_view::npos)
    return "; TCP to these addresses must pass firewalls at any time of the job (SETO_PORTS chooses ports, SETO_INTERFACE "
           "addresses); SETO_CONNECT=all makes every connection at init";
  if (!all_->tells_descriptors()) return "; the first such failure of this rank tells which limit it needs (ulimit -n)";
  const std::uint32_t each = peer_.wish.sockets(peer_.round_trip_us);
  const std::size_t in_use = open_descriptors();
  return "; " + std::to_string(in_use) + " of " + std::to_string(descriptor_limit()) +
         " descriptors are in use here, this one needs " + std::to_string(each) +
         ", and connections to all ranks would need a limit of " + std::to_string(in_use + std::size_t{each} * setup().members) +
         " (ulimit -n)";
}

void OnUseOpener::receive(Word word, std::string_view rest) {
  const std::shared_ptr<Domain> domain = setup().domain.lock();
  if (domain == nullptr) return;
  std::shared_ptr<Link> link;  // outlives the lock
  {
    const std::lock_guard lock(domain->lock());
    link = link_.lock();
    if (link == nullptr) return;
    if (word == Word::want) {
      link->peer_needs();
      if (const Status begun = dial_soon(); !begun.ok()) link->break_with(named(begun));
    } else if (word == Word::sockets && rest.size() == sizeof expected_ && expected_ == 0) {
      std::memcpy(&expected_, rest.data(), sizeof expected_);
      continues_ = (expected_ & kContinues) != 0;
      adapts_ = (expected_ & kAdapts) != 0;
      rails_ = (expected_ & ~(kContinues | kAdapts)) >> kRailsShift;
      routes_ = expected_ >> kRoutesShift & ((1U << (kRailsShift - kRoutesShift)) - 1);
      expected_ &= (1U << kRoutesShift) - 1;
      if (dials_ || expected_ == 0 || expected_ > kMostSockets || routes_ == 0 || routes_ > kMostRoutes ||
          expected_ % routes_ != 0 || expected_ + rails_ > kMostSockets || rails_ > peer_.most_rails ||
          (rails_ > 0 && !continues_))
        link->break_with(failure(Code::remote_error, "its process announced %u sockets", expected_));
      open_if_complete(*domain, link);
    } else if (word == Word::failed && !link->open()) {
      accepted_.clear();
      link->break_with(failure(Code::remote_error, "%s", printable(rest).c_str()));
    } else if (word == Word::gone && !link->open()) {
      link->break_with(failure(Code::remote_error, "its connection was closed"));
    }
  }
  setup().wakeup->ring();
}

void OnUseOpener::accept(std::uint32_t index, SecureStream socket) {
  prepare_tcp_socket(socket.get());
  const std::shared_ptr<Domain> domain = setup().domain.lock();
  if (domain == nullptr) return;
  std::shared_ptr<Link> link;  // outlives the lock
  {
    const std::lock_guard lock(domain->lock());
    link = link_.lock();
    if (link == nullptr || link->broken() || link->open()) return;
    accepted_[index] = std::move(socket);
    open_if_complete(*domain, link);
  }
  setup().wakeup->ring();
}

Status OnUseOpener::open(Domain& domain, const std::shared_ptr<Link>& link, std::vector<SecureStream> sockets) {
  opened_.store(true, std::memory_order_relaxed);
  std::shared_ptr<Redialer> redialer;
  if (continues_ && !link->broken() && !link->open()) {
    auto made = Redialer::create({setup().attempt, setup().key, setup().context, peer_.context, peer_.address, peer_.same_site,
                                  setup().connector, setup().domain, setup().redials, setup().wakeup});
    if (!made.ok()) {
      link->break_with(made.status());
      return made.status();
    }
    redialer = std::move(made).value();
    redialer->serve(link);
    link->set_routes(routes_);
    link->set_adapts(adapts_);
    if (rails_ > 0) link->set_rails(rails_, link_rails_);
    link->set_dialer(redialer);
  }
  SETO_TRY(domain.open(*link, std::move(sockets)));
  if (redialer != nullptr) redialer->sockets_opened(*link);
  return {};
}

void OnUseOpener::open_if_complete(Domain& domain, const std::shared_ptr<Link>& link) {
  if (link->broken() || expected_ == 0 || accepted_.size() != expected_ || accepted_.rbegin()->first != expected_ - 1) return;
  std::vector<SecureStream> sockets;
  for (auto& [index, socket] : accepted_) sockets.push_back(std::move(socket));
  accepted_.clear();
  if (const Status opened = open(domain, link, std::move(sockets)); !opened.ok())
    SETO_LOG(warn, "a data connection could not be used: %s", std::string(opened.text()).c_str());
}

// ---- all links of a context and an attempt ----

std::shared_ptr<OnUseLinks> OnUseLinks::create(Setup setup) {
  auto links = std::make_shared<OnUseLinks>(std::move(setup));
  const Setup& its = links->setup_;
  links->handler_ = its.channels->handlers().add(
      {its.attempt, handler_of(its.own)},
      {[] { return std::string(); },
       [raw = links.get()](std::uint32_t from, std::string_view message) { raw->receive(from, message); }});
  const std::lock_guard lock(acceptors().mutex);
  acceptors().all[{its.attempt, its.context}] = links;
  return links;
}

OnUseLinks::OnUseLinks(Setup setup) : setup_(std::move(setup)), admission_(setup_.connector->admit(setup_.key)) {}

// On a thread that dials, once in a context: to count descriptors takes milliseconds.
void OnUseLinks::tell_of_many(std::uint32_t sockets_of_each) {
  const std::uint32_t needed = needed_.load(std::memory_order_relaxed);
  if (needed <= kManyLinks || told_of_many_.exchange(true)) return;
  std::size_t contexts = 0;
  {
    const std::lock_guard lock(acceptors().mutex);
    for (const auto& [which, links] : acceptors().all) contexts += which.first == setup_.attempt ? 1 : 0;
  }
  const std::size_t in_use = open_descriptors();
  const std::size_t missing = contexts * sockets_of_each * (setup_.members - std::min(needed, setup_.members));
  const rlim_t limit = descriptor_limit();
  const std::string text = "rank " + std::to_string(setup_.own) + " has data connections with " + std::to_string(needed) +
                           " ranks; with all, as all_to_all needs them, its process needs a limit of " +
                           std::to_string(in_use + missing) + " descriptors, and has " + std::to_string(limit) + " (ulimit -n)";
  if (in_use + missing > limit)
    SETO_LOG(warn, "%s", text.c_str());
  else
    SETO_LOG(info, "%s", text.c_str());
}

OnUseLinks::~OnUseLinks() {
  if (generation_ != fork_generation()) return;  // in a forked child the lock may be held for ever
  const std::lock_guard lock(acceptors().mutex);
  acceptors().all.erase({setup_.attempt, setup_.context});
}

void OnUseLinks::accept_on(TcpConnector& connector) {
  connector.set_accept_handler(kPurposeLateData, [](const ConnectKey& caller, SecureStream socket) {
    if (Redialer::continues(caller.claim)) return Redialer::accept(caller, std::move(socket));
    std::shared_ptr<OnUseLinks> links;
    {
      const std::lock_guard lock(acceptors().mutex);
      const auto found = acceptors().all.find({caller.claim.attempt, caller.claim.answerer_context});
      if (found != acceptors().all.end()) links = found->second.lock();
    }
    if (links != nullptr) links->accept(caller, std::move(socket));
  });
}

Result<std::shared_ptr<Link>> OnUseLinks::add(const Peer& peer) {
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr) return failure(Code::internal, "a link for a context that has ended");
  const ConnectRequest request{peer.address, kPurposeLateData, setup_.context, peer.context, setup_.attempt, 0,
                               setup_.key,   Deadline::never()};
  SETO_ASSIGN(const TcpConnector::Plan plan, setup_.connector->plan(request));
  const auto opener = std::make_shared<OnUseOpener>(shared_from_this(), peer, plan);
  if (peer.rails != nullptr) {
    const auto rails = peer.rails->add(peer.number, plan.calls ? PipeMaker::Role::selects : PipeMaker::Role::follows);
    rails->use(peer.channel);
    opener->use(rails);
  }
  Link::Setup link;
  link.session = link_session(setup_.key, setup_.attempt, setup_.context, peer.context);
  link.round_trip_us = peer.round_trip_us;
  link.patience_ms = setup_.patience_ms;
  link.opener = opener;
  SETO_ASSIGN(std::shared_ptr<Link> made, domain->add(std::move(link)));
  {
    const std::lock_guard lock(domain->lock());
    opener->serve(made);
  }
  const std::lock_guard lock(mutex_);
  openers_[peer.number] = opener;
  return made;
}

std::shared_ptr<OnUseOpener> OnUseLinks::find(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = openers_.find(number);
  return found == openers_.end() ? nullptr : found->second.lock();
}

void OnUseLinks::receive(std::uint32_t from, std::string_view message) {
  if (message.empty()) return;
  if (const std::shared_ptr<OnUseOpener> opener = find(from))
    opener->receive(static_cast<Word>(message.front()), message.substr(1));
}

// The socket of a caller that no link here expects is closed.
void OnUseLinks::accept(const ConnectKey& caller, SecureStream socket) {
  if (caller.key != key_id(setup_.key)) return;
  std::shared_ptr<OnUseOpener> opener;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, one] : openers_) {
      auto candidate = one.lock();
      if (candidate == nullptr || !candidate->answers(caller.claim)) continue;
      opener = std::move(candidate);
      break;
    }
  }
  if (opener != nullptr) opener->accept(caller.claim.index, std::move(socket));
}

}  // namespace seto::tcp
