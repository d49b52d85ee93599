#include "src/control/network/tcp_connector.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "src/base/log.h"
#include "src/control/network/accepted_peers.h"
#include "src/control/network/dialer.h"
#include "src/control/network/peer_probe.h"
#include "src/control/network/tcp_authenticator.h"
#include "src/net/congestion.h"
#include "src/net/peer_listener.h"

namespace seto {
namespace {

constexpr int kFirstPauseMs = 5;
constexpr int kLongestPauseMs = 200;
// A dial that has waited for long looks less often at the flags that end it: hundreds of dials may wait at once.
constexpr int kFirstLookMs = 20;
constexpr int kLookMs = 200;  // between checks of conditions that depend on time only
constexpr int kBacklog = 4096;
constexpr int kRoundTripsMeasured = 5;  // a busy machine makes one longer

Status too_late(const TcpConnector::Plan& plan, const char* what, const std::string& report) {
  const char* const when = plan.request.purpose == kPurposeLateData ? "in time" : "before the deadline of the init";
  return failure(Code::timeout, "its process %s %s%s%s", what, when, report.empty() ? "" : ": ", report.c_str());
}

void pause(int milliseconds, const Deadline& until) { poll(nullptr, 0, std::min(milliseconds, until.wait_ms())); }

Status failed(const Dialer& dialer, const Status& why, bool known, const char* remedy) {
  if (dialer.refused() || why.code() == Code::unavailable) return why;
  if (dialer.tls_failed()) return failure(Code::remote_error, "no TLS with its process: %s", dialer.report().c_str());
  if (known && dialer.none_listening()) return failure(Code::remote_error, "its process has ended: %s", dialer.report().c_str());
  const char* const what = dialer.none_listening() ? "has ended, or cannot be reached from here" : "cannot be reached";
  return failure(Code::remote_error, "its process %s: %s; %s", what, dialer.report().c_str(), remedy);
}

const char* remedy_of(const TcpConnector::Plan& plan) { return plan.neither_accepts ? kNeitherAccepts : kReachRemedy; }

struct Holder {
  std::mutex mutex;
  std::atomic<TcpConnector*> present{nullptr};
  NetworkSettings settings;
};

// The one of this process; never destroyed, for the reason in control_process.cc.
Holder& holder() {
  static Holder* const only = new Holder;
  return *only;
}

TcpConnector* opened_before(Holder& one, const NetworkSettings& settings) {
  TcpConnector* const connector = one.present.load(std::memory_order_acquire);
  if (connector != nullptr && !(one.settings == settings)) {
    SETO_LOG(info,
             "this process listens already, with SETO_INTERFACE='%s' SETO_PORTS='%s' SETO_TLS=%s SETO_ADVERTISE='%s' "
             "SETO_DIAL_ONLY=%s SETO_TLS_CERTIFICATE='%s'; the new settings are ignored",
             one.settings.interfaces.c_str(), one.settings.ports.c_str(), std::string(name_of(one.settings.tls)).c_str(),
             one.settings.advertised.c_str(), one.settings.dial_only ? "on" : "off", one.settings.tls_files.certificate.c_str());
  }
  return connector;
}

}  // namespace

Result<TcpConnector*> TcpConnector::of_process(const NetworkSettings& settings) {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  Holder& one = holder();
  if (TcpConnector* const connector = opened_before(one, settings)) return connector;
  const std::lock_guard lock(one.mutex);
  if (TcpConnector* const connector = opened_before(one, settings)) return connector;
  SETO_ASSIGN(auto connector, create(*control, settings));
  one.settings = settings;
  one.present.store(connector.get(), std::memory_order_release);
  return connector.release();
}

Result<std::unique_ptr<TcpConnector>> TcpConnector::create(ControlThread& control, const NetworkSettings& settings) {
  SETO_ASSIGN(const NetworkChoice network, NetworkChoice::parse(settings));
  SETO_ASSIGN(PeerListener peers, listen_for_peers(network, kBacklog));
  std::unique_ptr<TcpConnector> connector(new TcpConnector);
  connector->tls_ = network.tls;
  connector->self_.process = random_token();
  connector->self_.library = library_version();
  connector->self_.dial_only = settings.dial_only;
  connector->self_.candidates = std::move(peers.reachable);
  connector->self_.paths = std::move(peers.paths);
  connector->address_ = encode(connector->self_);
  connector->accepted_ = std::make_unique<AcceptedPeers>(control);
  SETO_ASSIGN(connector->authenticator_,
              TcpAuthenticator::create(control, std::move(peers.listener), {connector->self_.process, network.tls},
                                       connector->keys_, *connector->accepted_));
  if (settings.tls == TlsMode::off) SETO_LOG(warn, "SETO_TLS=off: nothing that this process sends to other hosts is encrypted");
  SETO_LOG(info, "listening for peers at %s", to_text(connector->self_.candidates).c_str());
  return connector;
}

TcpConnector::TcpConnector()
    : keys_([this](const Secret& key) {
        if (authenticator_ != nullptr && generation_ == fork_generation()) authenticator_->key_added(key);
      }) {}

TcpConnector::~TcpConnector() = default;

// Both sides agree on who calls, because each knows both addresses.
Result<TcpConnector::Plan> TcpConnector::plan(const ConnectRequest& request) const {
  if (generation_ != fork_generation()) return used_in_forked_child();
  SETO_ASSIGN(ListenAddress remote, decode_listen_address(request.remote_address));
  if (remote.library != self_.library) {
    return failure(Code::remote_error,
                   "its library is version %s, the one here is version %s: install the same version on every machine",
                   remote.library.c_str(), self_.library.c_str());
  }
  const auto mine = std::tie(self_.process, request.mine);
  const auto theirs = std::tie(remote.process, request.theirs);
  if (mine == theirs) return failure(Code::invalid_argument, "a context was asked to connect to itself");
  Claim claim;
  claim.purpose = request.purpose;
  claim.attempt = request.attempt;
  claim.index = request.index;
  const bool calls = self_.dial_only == remote.dial_only ? mine < theirs : self_.dial_only;
  const bool neither_accepts = self_.dial_only && remote.dial_only;
  std::tie(claim.caller, claim.caller_context) = calls ? mine : theirs;
  std::tie(claim.answerer, claim.answerer_context) = calls ? theirs : mine;
  return Plan{request, std::move(remote), calls, neither_accepts, claim, tls_};
}

Result<SecureStream> TcpConnector::connect(const ConnectRequest& request) {
  SETO_ASSIGN(const Plan one, plan(request));
  const Admission admission = admit(request.key);
  return one.calls ? dial(one) : wait_for_caller(one);
}

Result<SecureStream> TcpConnector::dial(const Plan& plan) {
  const Deadline& until = plan.request.until;
  const Deadline patience = Deadline::after_ms(kRetryMs);
  const Token& process = plan.remote.process;
  std::string before;  // the report of the last dialer
  const std::uint8_t purpose = plan.request.purpose;
  const char* const remedy = remedy_of(plan);
  const bool plain = plan.request.same_site && (purpose == kPurposeData || purpose == kPurposeLateData);
  for (int rest_ms = kFirstPauseMs;; rest_ms = std::min(2 * rest_ms, kLongestPauseMs)) {
    const bool known = reached_.found(process).has_value();
    SETO_ASSIGN(auto along, reached_.addresses_along(plan.remote, plan.request.path));
    if (plan.request.only_path && along.of_path > 0) keep_path(along, plan.request.path);
    Dialer dialer({std::move(along.addresses), plan.request.key, plan.claim, tls_, plain, along.of_path,
                   own_of_path(plan.request.path), plan.request.short_segments});
    for (int look_ms = kFirstLookMs;; look_ms = std::min(2 * look_ms, kLookMs)) {
      auto socket = dialer.advance(std::min(until.remaining_ms(), look_ms));
      if (dialer.found() && plan.request.path == 0) reached_.remember(process, *dialer.found());
      if (socket.ok() && socket.value()) return std::move(*socket.value());
      if (!socket.ok()) {
        if (!dialer.may_change() || dialer.tls_failed() || patience.passed())
          return failed(dialer, socket.status(), known, remedy);
        if (until.passed()) return too_late(plan, "did not accept the connection", dialer.report());
        before = dialer.report();
        break;
      }
      if (until.passed()) return too_late(plan, "did not answer", (before.empty() ? dialer.report() : before) + "; " + remedy);
      if (patience.passed() && dialer.hopeless()) return failed(dialer, failure(Code::remote_error, "no answer"), false, remedy);
    }
    pause(rest_ms, until);
  }
}

// Addresses of a link hold for that link alone, so they are no sign of a path.
bool TcpConnector::meets(const SocketAddress& remote, std::uint8_t path) const {
  const std::vector<SocketAddress> own = own_of_path(path);
  return !remote.is_link_local() && std::any_of(own.begin(), own.end(), [&](const SocketAddress& one) {
    return one.family == remote.family && !one.is_link_local();
  });
}

bool TcpConnector::is_on_path(int fd, const ListenAddress& remote, std::uint8_t path) const {
  bool possible = false;
  for (std::size_t index = 0; index < remote.candidates.size(); ++index)
    possible = possible || (remote.path_of(index) == path && meets(remote.candidates[index], path));
  const Result<SocketAddress> address = local_address(fd);
  if (!possible || !address.ok()) return true;
  const std::vector<SocketAddress> own = own_of_path(path);
  return std::any_of(own.begin(), own.end(),
                     [&](const SocketAddress& one) { return one.with_port(0) == address.value().with_port(0); });
}

// Where the own path has no address of a family, the kernel would take another way.
void TcpConnector::keep_path(ReachedAddresses::AlongPath& along, std::uint8_t path) const {
  along.addresses.resize(along.of_path);
  const auto end = std::stable_partition(along.addresses.begin(), along.addresses.end(),
                                         [&](const SocketAddress& one) { return meets(one, path); });
  if (end == along.addresses.begin()) return;
  along.addresses.erase(end, along.addresses.end());
  along.of_path = along.addresses.size();
}

std::vector<SocketAddress> TcpConnector::own_of_path(std::uint8_t path) const {
  std::vector<SocketAddress> own;
  for (std::size_t index = 0; path != 0 && index < self_.candidates.size(); ++index)
    if (self_.path_of(index) == path) own.push_back(self_.candidates[index]);
  return own;
}

Result<SecureStream> TcpConnector::wait_for_caller(const Plan& plan) {
  const ConnectKey key{key_id(plan.request.key), plan.claim};
  const Deadline& until = plan.request.until;
  const std::unique_ptr<PeerProbe> peer_probe = probe(plan);
  while (true) {
    auto socket = accepted_->take(key, until.sooner_ms(static_cast<std::uint64_t>(peer_probe->wait_ms())));
    if (socket.ok() || socket.status().code() != Code::timeout) return socket;
    if (until.passed()) return too_late(plan, "did not connect", peer_probe->last_failure());
    SETO_TRY(peer_probe->step());
  }
}

// The handshake is that of a probe (peer_probe.h).
std::uint32_t TcpConnector::measure_round_trip(const ConnectRequest& request, std::uint32_t near_us) {
  const Result<Plan> one = plan(request);
  if (!one.ok() || one.value().remote.dial_only) return 0;
  Claim claim = one.value().claim;
  claim.purpose = kPurposeProbe;
  std::tie(claim.caller, claim.caller_context) = std::tie(self_.process, request.mine);
  std::tie(claim.answerer, claim.answerer_context) = std::tie(one.value().remote.process, request.theirs);
  std::uint32_t shortest = 0;
  for (int measured = 0; measured < kRoundTripsMeasured && (shortest == 0 || shortest >= near_us);) {
    auto addresses = reached_.addresses_of(one.value().remote);
    if (!addresses.ok()) break;
    Dialer dialer({std::move(addresses).value(), request.key, claim, tls_});
    Result<std::optional<SecureStream>> socket = std::optional<SecureStream>();
    while (socket.ok() && !socket.value() && !request.until.passed())
      socket = dialer.advance(std::min(request.until.wait_ms(), kLookMs));
    if (dialer.found()) reached_.remember(one.value().remote.process, *dialer.found());
    if (request.until.passed() || (!socket.ok() && !dialer.may_change())) break;
    if (!socket.ok()) {
      pause(kFirstPauseMs, request.until);
      continue;
    }
    ++measured;
    const std::uint32_t now = round_trip_us(socket.value()->get());
    if (now != 0 && (shortest == 0 || now < shortest)) shortest = now;
  }
  return shortest;
}

TcpConnector::Reached TcpConnector::reach_again(const Plan& plan, std::uint32_t attempt, Deadline until) {
  Reached reached;
  if (!plan.calls && plan.remote.dial_only) return reached;  // no peer reaches it
  Claim claim = plan.claim;
  claim.purpose = plan.calls ? kPurposeControlAgain : kPurposeProbe;
  claim.index = plan.calls ? attempt : 0;
  if (!plan.calls) {
    std::swap(claim.caller, claim.answerer);
    std::swap(claim.caller_context, claim.answerer_context);
  }
  auto addresses = reached_.addresses_of(plan.remote);
  if (!addresses.ok()) {
    reached.report = addresses.status().text();
    return reached;
  }
  Dialer dialer({std::move(addresses).value(), plan.request.key, claim, tls_});
  while (!until.passed()) {
    auto socket = dialer.advance(std::min(until.wait_ms(), kLookMs));
    if (socket.ok() && !socket.value()) continue;
    if (dialer.found()) reached_.remember(plan.remote.process, *dialer.found());
    if (socket.ok() && plan.calls) reached.socket = std::move(*socket.value());
    reached.gone = !socket.ok() && ((dialer.none_listening() && dialer.some_refused()) || dialer.key_unknown());
    break;
  }
  reached.report = dialer.report();
  return reached;
}

std::unique_ptr<PeerProbe> TcpConnector::probe(const Plan& plan) { return std::make_unique<PeerProbe>(plan, reached_); }

void TcpConnector::decline(AttemptId attempt, ContextId mine, const Secret& key, const Status& reason) {
  const Status given{Code::aborted, std::string(reason.text())};
  accepted_->decline({attempt, mine}, admit(key), given);
  const std::lock_guard lock(listener_mutex_);
  if (decline_listener_) decline_listener_(attempt, mine, given);
}

void TcpConnector::on_decline(DeclineListener listener) {
  const std::lock_guard lock(listener_mutex_);
  decline_listener_ = std::move(listener);
}

void TcpConnector::set_accept_handler(std::uint8_t purpose, AcceptHandler accept_handler) {
  accepted_->set_accept_handler(purpose, std::move(accept_handler));
}

std::optional<Status> TcpConnector::declined(AttemptId attempt, ContextId mine) const {
  return accepted_->declined({attempt, mine});
}

}  // namespace seto
