#include "src/control/network/tcp_connector.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "src/base/log.h"
#include "src/control/network/dialer.h"
#include "src/control/network/peer_probe.h"
#include "src/control/network/tcp_authenticator.h"
#include "src/control/network/accepted_peers.h"
#include "src/net/peer_listener.h"

namespace seto {
namespace {

constexpr int kFirstPauseMs = 5;
constexpr int kLongestPauseMs = 200;
constexpr int kLookMs = 200;  // at what changes with time alone
constexpr int kBacklog = 4096;

Status too_late(const char* what, const std::string& report) {
  return failure(Code::timeout, "its process %s before the deadline of the init%s%s", what, report.empty() ? "" : ": ",
                 report.c_str());
}

void pause(int milliseconds, const Deadline& until) { poll(nullptr, 0, std::min(milliseconds, until.wait_ms())); }

Status failed(const Dial& dial, const Status& why, bool known) {
  if (dial.refused() || why.code() == Code::unavailable) return why;
  if (known && dial.nobody_there()) return failure(Code::remote_error, "its process has ended: %s", dial.report().c_str());
  const char* const what = dial.nobody_there() ? "has ended, or cannot be reached from here" : "cannot be reached";
  return failure(Code::remote_error, "its process %s: %s", what, dial.report().c_str());
}

struct Holder {
  std::mutex mutex;
  std::atomic<FrontDoor*> present{nullptr};
  DoorSettings settings;
};

// Of this process, as control_process.cc; leaked for the same reason.
Holder& holder() {
  static Holder* const only = new Holder;
  return *only;
}

FrontDoor* opened_before(Holder& one, const DoorSettings& settings) {
  FrontDoor* const door = one.present.load(std::memory_order_acquire);
  if (door != nullptr && !(one.settings == settings)) {
    SETO_LOG(info, "this process listens already, with SETO_INTERFACE='%s' SETO_PORTS='%s': other settings come too late",
             one.settings.interfaces.c_str(), one.settings.ports.c_str());
  }
  return door;
}

}  // namespace

Result<FrontDoor*> FrontDoor::of_process(const DoorSettings& settings) {
  SETO_ASSIGN(ControlThread * control, ControlThread::of_process());
  Holder& one = holder();
  if (FrontDoor* const door = opened_before(one, settings)) return door;
  const std::lock_guard lock(one.mutex);
  if (FrontDoor* const door = opened_before(one, settings)) return door;
  SETO_ASSIGN(auto door, create(*control, settings));
  one.settings = settings;
  one.present.store(door.get(), std::memory_order_release);
  return door.release();
}

Result<std::unique_ptr<FrontDoor>> FrontDoor::create(ControlThread& control, const DoorSettings& settings) {
  SETO_ASSIGN(const NetworkChoice network, NetworkChoice::parse(settings.interfaces, settings.ports));
  SETO_ASSIGN(PeerListener peers, listen_for_peers(network, kBacklog));
  std::unique_ptr<FrontDoor> door(new FrontDoor);
  door->self_.process = random_token();
  door->self_.library = library_version();
  door->self_.candidates = std::move(peers.reachable);
  door->address_ = encode(door->self_);
  door->visitors_ = std::make_unique<Visitors>(control);
  SETO_ASSIGN(door->porch_,
              Porch::create(control, std::move(peers.listener), door->self_.process, door->keys_, *door->visitors_));
  SETO_LOG(info, "listening for peers at %s", to_text(door->self_.candidates).c_str());
  return door;
}

FrontDoor::FrontDoor()
    : keys_([this](const KeyId& id) {
        if (porch_ != nullptr && generation_ == fork_generation()) porch_->key_came(id);
      }) {}

FrontDoor::~FrontDoor() = default;

// The smaller of the two contexts calls, by process and number: both sides see it alike.
Result<FrontDoor::Plan> FrontDoor::plan(const Visit& visit) const {
  if (generation_ != fork_generation()) return used_in_forked_child();
  SETO_ASSIGN(DoorAddress remote, decode_door_address(visit.remote_address));
  if (remote.library != self_.library) {
    return failure(Code::remote_error,
                   "its library is version %s, the one here is version %s: install the same version on every machine",
                   remote.library.c_str(), self_.library.c_str());
  }
  const auto mine = std::tie(self_.process, visit.mine);
  const auto theirs = std::tie(remote.process, visit.theirs);
  if (mine == theirs) return failure(Code::invalid_argument, "a context was to meet itself");
  Claim claim;
  claim.purpose = visit.purpose;
  claim.attempt = visit.attempt;
  claim.index = visit.index;
  const bool calls = mine < theirs;
  std::tie(claim.caller, claim.caller_context) = calls ? mine : theirs;
  std::tie(claim.answerer, claim.answerer_context) = calls ? theirs : mine;
  return Plan{visit, std::move(remote), calls, claim};
}

Result<PrivateFd> FrontDoor::meet(const Visit& visit) {
  SETO_ASSIGN(const Plan one, plan(visit));
  const Admission heard = admit(visit.key);
  return one.calls ? call(one) : answer(one);
}

Result<PrivateFd> FrontDoor::call(const Plan& plan) {
  const Deadline& until = plan.visit.until;
  const Deadline patience = Deadline::after_ms(kPatienceMs);
  const Token& process = plan.remote.process;
  std::string before;  // what was wrong the last time
  for (int rest_ms = kFirstPauseMs;; rest_ms = std::min(2 * rest_ms, kLongestPauseMs)) {
    const bool known = book_.found(process).has_value();
    SETO_ASSIGN(auto addresses, book_.addresses_of(plan.remote));
    Dial dial({std::move(addresses), plan.visit.key, plan.claim});
    while (true) {
      auto socket = dial.advance(std::min(until.wait_ms(), kLookMs));
      if (dial.found()) book_.remember(process, *dial.found());
      if (socket.ok() && socket.value()) return std::move(*socket.value());
      if (!socket.ok()) {
        if (!dial.may_change() || patience.passed()) return failed(dial, socket.status(), known);
        if (until.passed()) return too_late("did not take the call", dial.report());
        before = dial.report();
        break;
      }
      if (until.passed()) return too_late("did not answer", before.empty() ? dial.report() : before);
      if (patience.passed() && dial.hopeless()) return failed(dial, failure(Code::remote_error, "no answer"), false);
    }
    pause(rest_ms, until);
  }
}

Result<PrivateFd> FrontDoor::answer(const Plan& plan) {
  const VisitKey key{key_id(plan.visit.key), plan.claim};
  const Deadline& until = plan.visit.until;
  const std::unique_ptr<Inquiry> inquiry = inquire(plan);
  while (true) {
    auto socket = visitors_->take(key, until.sooner_ms(static_cast<std::uint64_t>(inquiry->patience_ms())));
    if (socket.ok() || socket.status().code() != Code::timeout) return socket;
    if (until.passed()) return too_late("did not call", inquiry->doubts());
    SETO_TRY(inquiry->step());
  }
}

std::unique_ptr<Inquiry> FrontDoor::inquire(const Plan& plan) { return std::make_unique<Inquiry>(plan, book_); }

void FrontDoor::decline(AttemptId attempt, ContextId mine, const Secret& key, const Status& reason) {
  const Status given{Code::aborted, std::string(reason.text())};
  visitors_->decline({attempt, mine}, admit(key), given);
  const std::lock_guard lock(listener_mutex_);
  if (decline_listener_) decline_listener_(attempt, mine, given);
}

void FrontDoor::hear_declines(DeclineListener listener) {
  const std::lock_guard lock(listener_mutex_);
  decline_listener_ = std::move(listener);
}

void FrontDoor::greet(std::uint8_t purpose, Greeter greeter) { visitors_->greet(purpose, std::move(greeter)); }

std::optional<Status> FrontDoor::declined(AttemptId attempt, ContextId mine) const {
  return visitors_->declined({attempt, mine});
}

}  // namespace seto
