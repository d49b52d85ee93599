#include "transports/tcp/connect/redialer.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/net/local_socket.h"
#include "transports/resume/hello.h"
#include "transports/tcp/connect/tcp_sockets.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kDialMs = 5'000;  // for one attempt
// The same while another path works: one that is dead for long must not delay the next that breaks.
constexpr std::uint64_t kDialBesideMs = 2'000;
constexpr std::uint32_t kFirstPauseMs = 50;
constexpr std::uint32_t kLongestPauseMs = 2'000;
// The same while nothing of the link moves: calls wait for the first socket that works again, after an outage of all paths.
constexpr std::uint32_t kLongestPauseOfAllMs = 200;
// Paths that break sooner after they were opened are dialed after a pause, too, but not after one that grows as long.
constexpr std::uint64_t kStableNs = 1'000'000'000;
constexpr std::uint32_t kLongestPauseAfterSuccessMs = 200;
// The path in a hello of an answerer that has no such link any more.
constexpr std::uint32_t kNoSuchLink = ~std::uint32_t{0};

// The links of this process that accept paths; never destroyed, as the connector that calls accept().
struct Answerers {
  std::mutex mutex;
  std::map<Redialer::Key, std::weak_ptr<Redialer>> all;
};

Answerers& answerers() {
  static Answerers* const only = new Answerers;
  return *only;
}

// An end without one would tell the peer that the link is closed.
void reset_at_close(const SecureStream& socket, bool reset) {
  const linger at_once{reset ? 1 : 0, 0};
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Status receive_exactly(SecureStream& socket, std::byte* to, std::size_t size, Deadline until) {
  for (std::size_t have = 0; have < size;) {
    const ssize_t got = socket.receive(to + have, size - have);
    if (got < 0 && errno == EAGAIN) {
      SETO_TRY(wait_for(socket.get(), POLLIN, until));
      continue;
    }
    if (got == 0) return failure(Code::remote_error, "its process closed the new connection");
    if (got < 0) return connection_failure(socket.failure_text(errno));
    have += static_cast<std::size_t>(got);
  }
  return {};
}

Result<resume::Hello> receive_hello(SecureStream& socket, Deadline until) {
  constexpr std::size_t kBeginning = resume::kHelloFixed + 16;
  resume::HelloBytes bytes;
  SETO_TRY(receive_exactly(socket, bytes.data(), kBeginning, until));
  SETO_ASSIGN(const std::size_t length, resume::length_of_hello({bytes.data(), kBeginning}));
  SETO_TRY(receive_exactly(socket, bytes.data() + kBeginning, length - kBeginning, until));
  return resume::decode_hello({bytes.data(), length});
}

// A hello has room in a new socket.
bool send_hello(SecureStream& socket, const resume::Hello& hello) {
  resume::HelloBytes bytes;
  const std::size_t size = encode(hello, bytes);
  return socket.send_whole({reinterpret_cast<const char*>(bytes.data()), size});
}

// Descriptors have the lowest numbers that are free. Sockets that a link can do without leave a half to others.
bool uses_many_descriptors(int descriptor) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(descriptor) >= limit.rlim_cur / 2;
}

}  // namespace

Result<std::shared_ptr<Redialer>> Redialer::create(Setup setup) {
  const ConnectRequest request{setup.address, kPurposeLateData, setup.context, setup.peer,
                               setup.attempt, 1U << kPathBits,  setup.key,     Deadline::never()};
  SETO_ASSIGN(const TcpConnector::Plan plan, setup.connector->plan(request));
  auto made = std::make_shared<Redialer>(std::move(setup), plan);
  if (made->dials_) return made;
  const std::lock_guard lock(answerers().mutex);
  answerers().all[made->key()] = made;
  return made;
}

Redialer::Redialer(Setup setup, const TcpConnector::Plan& plan)
    : setup_(std::move(setup)),
      dials_(plan.calls),
      remote_(plan.remote),
      process_(plan.remote.process),
      admission_(setup_.connector->admit(setup_.key)) {}

Redialer::~Redialer() {
  if (dials_ || generation_ != fork_generation()) return;  // in a forked child the lock may be held for ever
  const std::lock_guard lock(answerers().mutex);
  const auto own = answerers().all.find(key());
  if (own != answerers().all.end() && own->second.expired()) answerers().all.erase(own);
}

void Redialer::serve(const std::shared_ptr<Link>& link) {
  link_ = link;
  served_ = true;
  if (link->open()) sockets_opened(*link);
}

void Redialer::sockets_opened(Link& link) {
  if (dials_) leave_other_paths(link);
  if (link.live_paths() < link.wanted_sockets()) paths_broke();  // so soon
}

// ---- the end that answers ----

// On the control thread.
void Redialer::accept(const ConnectKey& caller, SecureStream socket) {
  const Claim& claim = caller.claim;
  const std::uint32_t path = claim.index & ((1U << kPathBits) - 1);
  const std::uint32_t attempt = claim.index >> kPathBits;
  std::shared_ptr<Redialer> redialer;
  {
    const std::lock_guard lock(answerers().mutex);
    const auto found = answerers().all.find({claim.attempt, claim.answerer_context, claim.caller, claim.caller_context});
    if (found != answerers().all.end()) redialer = found->second.lock();
  }
  reset_at_close(socket, true);
  if (redialer == nullptr) {
    const resume::Hello none{claim.attempt, claim.answerer_context, claim.caller_context, attempt, kNoSuchLink, {}};
    if (send_hello(socket, none)) reset_at_close(socket, false);
    return;
  }
  if (caller.key != key_id(redialer->setup_.key)) return;
  redialer->answer(path, attempt, std::move(socket));
}

void Redialer::answer(std::uint32_t path, std::uint32_t attempt, SecureStream socket) {
  prepare_tcp_socket(socket.get());
  resume::Hello hello{setup_.attempt, setup_.context, setup_.peer, attempt, path, {}};
  const auto refuse = [&] {
    hello.path = kNoSuchLink;
    if (send_hello(socket, hello)) reset_at_close(socket, false);
  };
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr) return refuse();
  std::shared_ptr<Link> link;  // outlives the lock: it may hold the last reference
  {
    const std::lock_guard lock(domain->lock());
    link = link_.lock();
    if (!served_) return;  // the caller tries again
    if (link == nullptr || link->has_ended()) return refuse();
    if (!link->takes_path(path, attempt)) return;
    hello.heard = link->heard_frames();
    if (!send_hello(socket, hello)) return;
    if (!domain->take_path(*link, path, std::move(socket), attempt)) return;
  }
  setup_.wakeup->ring();
}

// ---- the end that dials ----

void Redialer::paths_broke() {
  if (!dials_ || dialing_) return;
  dialing_ = setup_.threads->add([self = shared_from_this()] { self->dial(); }).ok();
}

std::vector<std::uint32_t> Redialer::wanted() {
  std::vector<std::uint32_t> paths;
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr) return paths;
  std::shared_ptr<Link> link;  // outlives the lock
  const std::lock_guard lock(domain->lock());
  link = link_.lock();
  if (link != nullptr) leave_other_paths(*link);
  nothing_moves_ = link != nullptr && !link->moves();
  for (std::uint32_t path = 0; link != nullptr && !link->broken() && path < link->sockets(); ++path)
    if (link->wants_path(path)) paths.push_back(path);
  dialing_ = !paths.empty();
  return paths;
}

// One round: all broken paths at once. Then other links have their turn.
void Redialer::dial() {
  pause();
  const std::vector<std::uint32_t> paths = wanted();
  if (paths.empty()) {
    failed_ = false;  // the next path that breaks is dialed at once
    return;
  }
  ++attempts_;
  std::atomic<std::size_t> opened{0};
  (void)side_by_side(paths.size(), paths.size(), [&](std::size_t number, const std::atomic<bool>&) -> Status {
    const Status outcome = open_path(paths[number]);
    if (outcome.ok()) {
      opened.fetch_add(1);
    } else {
      SETO_LOG(info, "a data socket could not be opened: %s", std::string(outcome.text()).c_str());
      give_up_place(paths[number]);
    }
    return {};
  });
  failed_ = opened.load() == 0;
  if (!failed_) {
    succeeded_ns_ = monotonic_ns();
    setup_.wakeup->ring();
  }
  (void)setup_.threads->add([self = shared_from_this()] { self->dial(); });  // finds what has broken meanwhile
}

// A link can do without the sockets that it did not begin with.
void Redialer::give_up_place(std::uint32_t path) const {
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr) return;
  std::shared_ptr<Link> link;  // outlives the lock
  const std::lock_guard lock(domain->lock());
  link = link_.lock();
  if (link != nullptr) link->give_up_place(path);
}

// None before the first dial after a quiet time.
void Redialer::pause() {
  const bool soon = succeeded_ns_ != 0 && monotonic_ns() - succeeded_ns_ < kStableNs;
  if (!failed_ && !soon) {
    pause_ms_ = 0;
    return;
  }
  const std::uint32_t after_failure_ms = nothing_moves_ ? kLongestPauseOfAllMs : kLongestPauseMs;
  pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, failed_ ? after_failure_ms : kLongestPauseAfterSuccessMs);
  const Deadline until = Deadline::after_ms(pause_ms_).unless(&stop_).unless(&setup_.threads->stopping());
  while (!until.passed()) (void)poll(nullptr, 0, until.wait_ms());
}

Status Redialer::open_path(std::uint32_t path) {
  const auto within = [&](std::uint64_t ms) { return Deadline::after_ms(ms).unless(&stop_).unless(&setup_.threads->stopping()); };
  Deadline until = within(kDialMs);
  ConnectRequest request{
      setup_.address, kPurposeLateData, setup_.context, setup_.peer, setup_.attempt, path | attempts_ << kPathBits, setup_.key,
      until,          setup_.same_site};
  choose_path(path, request);
  if (request.only_path) request.until = until = within(kDialBesideMs);
  SETO_ASSIGN(SecureStream socket, open_tcp_socket(*setup_.connector, request));
  reset_at_close(socket, true);
  SETO_ASSIGN(const resume::Hello hello, receive_hello(socket, until));
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr) return failure(Code::aborted, "its context has ended");
  std::shared_ptr<Link> link;  // outlives the lock
  const std::lock_guard lock(domain->lock());
  link = link_.lock();
  if (link == nullptr || link->broken()) return failure(Code::aborted, "the link has ended");
  if (path >= link->first_sockets() && uses_many_descriptors(socket.get()))
    return failure(Code::unavailable, "half of the file descriptors are in use (ulimit -n)");
  if (hello.path == kNoSuchLink) return peer_has_no_link(*link);
  const resume::Expected expected{setup_.attempt, setup_.peer, setup_.context, attempts_ - 1,
                                  static_cast<std::uint32_t>(link->sockets())};
  SETO_TRY(resume::admit(hello, expected));
  if (hello.path != path || hello.attempt != attempts_) return failure(Code::remote_error, "its hello is of another path");
  if (!link->takes_path(path, attempts_)) return failure(Code::remote_error, "the path is open");
  if (const Status heard = link->hear(hello.heard); !heard.ok()) {
    link->break_with(heard);
    return heard;
  }
  if (!domain->take_path(*link, path, std::move(socket), attempts_)) return failure(Code::aborted, "the link has ended");
  return {};
}

// A path of the network that does not answer soon is replaced by another one, so that a job begins. Once some socket lies where
// it should, the others wait for their own path: a backup on the first path's wire is none, and data would stay on a slow path.
void Redialer::leave_other_paths(Link& link) const {
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr || link.routes() < 2) return;
  std::vector<std::size_t> misplaced;
  std::size_t placed = 0;
  for (std::size_t path = 0; path < link.sockets(); ++path) {
    if (!link.is_live(path)) continue;
    if (setup_.connector->is_on_path(link.descriptor(path), remote_, link.path_to_request(path)))
      ++placed;
    else
      misplaced.push_back(path);
  }
  if (placed == 0 || misplaced.empty()) return;
  SETO_LOG(warn,
           "%zu of %zu data sockets lie on another path of SETO_PATHS than their own, which did not answer: it is dialed "
           "until it does",
           misplaced.size(), link.wanted_sockets());
  for (const std::size_t path : misplaced) domain->leave_path(link, path);
}

// While another path of the network works, a socket waits for its own one.
void Redialer::choose_path(std::uint32_t path, ConnectRequest& request) const {
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (domain == nullptr) return;
  std::shared_ptr<Link> link;  // outlives the lock
  const std::lock_guard lock(domain->lock());
  link = link_.lock();
  if (link == nullptr) return;
  request.path = link->path_to_request(path);
  request.only_path = link->live_paths() > 0;
  request.short_segments = link->wants_short_segments(path);
}

// The peer had the link when it sent its first frame. It has closed it, if it has not yet to be made there.
Status Redialer::peer_has_no_link(Link& link) {
  if (link.live_paths() == 0 && !link.has_offers() && link.heard() > 0) link.break_with(closed_by_peer());
  return closed_by_peer();
}

}  // namespace seto::tcp
