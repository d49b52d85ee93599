#include "src/control/network/accepted_peers.h"

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "src/control/local/local_listener.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

Status no_descriptors_for_caller() {
  errno = EMFILE;
  return socket_failure("cannot take the connection of a peer");
}

// The socket's buffer has room because little has been sent on it before.
bool accept(AcceptedPeers::AcceptedPeer& peer) {
  peer.channel.accept();
  return peer.channel.flush();
}

void refuse(AcceptedPeers::AcceptedPeer& peer, const Status& reason) {
  peer.channel.refuse(reason);
  static_cast<void>(peer.channel.flush());
}

}  // namespace

AcceptedPeers::~AcceptedPeers() {
  // Watch handlers take the mutex, and removing a watch waits for its handler: so the watches are destroyed after the lock.
  std::map<ConnectKey, Parked> parked;
  const std::lock_guard lock(mutex_);
  parked.swap(parked_);
}

void AcceptedPeers::add(const KeyId& key, AcceptedPeer peer) {
  const ConnectKey who{key, peer.channel.handshake().claim()};
  if (refuse_if_due(who, peer)) return;
  std::shared_ptr<const AcceptHandler> accept_handler;
  {
    const std::lock_guard lock(mutex_);
    const auto found = accept_handlers_.find(who.claim.purpose);
    if (found != accept_handlers_.end()) accept_handler = found->second;
    handler_running_ = accept_handler != nullptr;
  }
  if (accept_handler == nullptr) return park(who, std::move(peer));
  if (accept(peer)) (*accept_handler)(who, peer.channel.take_stream());
  {
    const std::lock_guard lock(mutex_);
    handler_running_ = false;
  }
  handler_done_.notify_all();
}

// Accepts a probe without a further action: the reply means that the connection may still come.
bool AcceptedPeers::refuse_if_due(const ConnectKey& key, AcceptedPeer& peer) {
  const std::lock_guard lock(mutex_);
  const Claim& claim = key.claim;
  // A channel that is made again serves other attempts, too, than the one that it was opened for.
  const auto given_up =
      claim.purpose == kPurposeControlAgain ? declined_.end() : declined_.find({claim.attempt, claim.answerer_context});
  if (given_up != declined_.end()) {
    refuse(peer, given_up->second.reason);
  } else if (claim.purpose == kPurposeProbe) {
    static_cast<void>(accept(peer));
  } else if (peer.on_reserve) {
    if (refused_.size() >= kParkedLimit) refused_.clear();
    refused_.insert(key);
    refuse(peer, failure(Code::unavailable, "its process is out of file descriptors; raise ulimit -n there"));
    arrived_.notify_all();
  } else {
    return false;
  }
  return true;
}

void AcceptedPeers::park(const ConnectKey& key, AcceptedPeer peer) {
  const std::lock_guard lock(mutex_);
  if (parked_.size() >= kParkedLimit) return;
  const std::uint64_t id = next_id_++;
  auto watch = control_.watch(peer.channel.fd(), [this, id] {
    const std::lock_guard held(mutex_);
    forget(id);
  });
  if (!watch.ok()) return;
  // A later connection of the same pair replaces an earlier one, which the caller must have given up.
  parked_.erase(key);
  parked_.emplace(key, Parked{id, std::move(peer), std::move(watch).value()});
  arrived_.notify_all();
}

void AcceptedPeers::forget(std::uint64_t id) {
  std::erase_if(parked_, [id](const auto& entry) { return entry.second.id == id; });
}

Result<SecureStream> AcceptedPeers::take(const ConnectKey& key, Deadline until) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto found = parked_.find(key); found != parked_.end()) {
      Parked taken = std::move(found->second);
      parked_.erase(found);
      lock.unlock();
      taken.watch.remove();
      if (accept(taken.peer)) return taken.peer.channel.take_stream();
      return failure(Code::remote_error, "its process ended, or gave up, while the two were connecting");
    }
    if (refused_.erase(key) > 0) return no_descriptors_for_caller();
    if (until.passed()) return failure(Code::timeout, "it did not connect");
    arrived_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
  }
}

void AcceptedPeers::decline(const Attempt& attempt, Admission admission, const Status& reason) {
  std::vector<Parked> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (declined_.try_emplace(attempt, Declined{reason, std::move(admission)}).second) declined_order_.push_back(attempt);
    if (declined_order_.size() > kDeclinedLimit) {
      declined_.erase(declined_order_.front());
      declined_order_.pop_front();
    }
    for (auto entry = parked_.begin(); entry != parked_.end();) {
      const Claim& claim = entry->first.claim;
      const bool declined_now = claim.attempt == attempt.attempt && claim.answerer_context == attempt.context;
      if (declined_now) waiting.push_back(std::move(entry->second));
      entry = declined_now ? parked_.erase(entry) : std::next(entry);
    }
  }
  for (Parked& parked : waiting) refuse(parked.peer, reason);
}

std::optional<Status> AcceptedPeers::declined(const Attempt& attempt) const {
  const std::lock_guard lock(mutex_);
  const auto found = declined_.find(attempt);
  if (found == declined_.end()) return std::nullopt;
  return found->second.reason;
}

void AcceptedPeers::set_accept_handler(std::uint8_t purpose, AcceptHandler accept_handler) {
  std::unique_lock lock(mutex_);
  if (accept_handler) {
    accept_handlers_[purpose] = std::make_shared<const AcceptHandler>(std::move(accept_handler));
    return;
  }
  accept_handlers_.erase(purpose);
  handler_done_.wait(lock, [this] { return !handler_running_; });
}

}  // namespace seto
