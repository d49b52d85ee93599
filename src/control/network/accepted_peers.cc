#include "src/control/network/accepted_peers.h"

#include <sys/socket.h>

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

bool accept(Visitors::Guest& guest) {
  guest.handshake.accept();
  return send_whole(guest.fd.get(), guest.handshake.take_out());
}

void refuse(Visitors::Guest& guest, const Status& reason) {
  guest.handshake.refuse(reason);
  static_cast<void>(send_whole(guest.fd.get(), guest.handshake.take_out()));
}

}  // namespace

bool send_whole(int fd, std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Visitors::~Visitors() {
  // The handlers of watches take the mutex, and removing one waits for it.
  std::map<VisitKey, Parked> parked;
  const std::lock_guard lock(mutex_);
  parked.swap(parked_);
}

void Visitors::come(const KeyId& key, Guest guest) {
  const VisitKey who{key, guest.handshake.claim()};
  if (refuse_if_due(who, guest)) return;
  std::shared_ptr<const Greeter> greeter;
  {
    const std::lock_guard lock(mutex_);
    const auto found = greeters_.find(who.claim.purpose);
    if (found != greeters_.end()) greeter = found->second;
    greeting_ = greeter != nullptr;
  }
  if (greeter == nullptr) return park(who, std::move(guest));
  if (accept(guest)) (*greeter)(who, std::move(guest.fd));
  {
    const std::lock_guard lock(mutex_);
    greeting_ = false;
  }
  greeted_.notify_all();
}

// A question whose answer is that the call may still come is accepted, and that is all.
bool Visitors::refuse_if_due(const VisitKey& key, Guest& guest) {
  const std::lock_guard lock(mutex_);
  const Claim& claim = key.claim;
  if (const auto given_up = declined_.find({claim.attempt, claim.answerer_context}); given_up != declined_.end()) {
    refuse(guest, given_up->second.reason);
  } else if (claim.purpose == kPurposeQuestion) {
    static_cast<void>(accept(guest));
  } else if (guest.on_reserve) {
    if (refused_.size() >= kParkedLimit) refused_.clear();
    refused_.insert(key);
    refuse(guest, failure(Code::unavailable, "its process is out of file descriptors; raise ulimit -n there"));
    arrived_.notify_all();
  } else {
    return false;
  }
  return true;
}

void Visitors::park(const VisitKey& key, Guest guest) {
  const std::lock_guard lock(mutex_);
  if (parked_.size() >= kParkedLimit) return;
  const std::uint64_t id = next_id_++;
  auto watch = control_.watch(guest.fd.get(), [this, id] {
    const std::lock_guard held(mutex_);
    forget(id);
  });
  if (!watch.ok()) return;
  // A later call of the same pair replaces an earlier one, which its caller must have given up.
  parked_.erase(key);
  parked_.emplace(key, Parked{id, std::move(guest), std::move(watch).value()});
  arrived_.notify_all();
}

void Visitors::forget(std::uint64_t id) {
  std::erase_if(parked_, [id](const auto& entry) { return entry.second.id == id; });
}

Result<PrivateFd> Visitors::take(const VisitKey& key, Deadline until) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto found = parked_.find(key); found != parked_.end()) {
      Parked taken = std::move(found->second);
      parked_.erase(found);
      lock.unlock();
      taken.watch.remove();
      if (accept(taken.guest)) return std::move(taken.guest.fd);
      return failure(Code::remote_error, "its process ended, or gave up, while the two were connecting");
    }
    if (refused_.erase(key) > 0) return no_descriptors_for_caller();
    if (until.passed()) return failure(Code::timeout, "it did not call");
    arrived_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
  }
}

void Visitors::decline(const Attempt& attempt, Admission heard, const Status& reason) {
  std::vector<Parked> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (declined_.try_emplace(attempt, Declined{reason, std::move(heard)}).second) declined_order_.push_back(attempt);
    if (declined_order_.size() > kDeclinedLimit) {
      declined_.erase(declined_order_.front());
      declined_order_.pop_front();
    }
    for (auto entry = parked_.begin(); entry != parked_.end();) {
      const Claim& claim = entry->first.claim;
      const bool in_vain = claim.attempt == attempt.attempt && claim.answerer_context == attempt.context;
      if (in_vain) waiting.push_back(std::move(entry->second));
      entry = in_vain ? parked_.erase(entry) : std::next(entry);
    }
  }
  for (Parked& parked : waiting) refuse(parked.guest, reason);
}

std::optional<Status> Visitors::declined(const Attempt& attempt) const {
  const std::lock_guard lock(mutex_);
  const auto found = declined_.find(attempt);
  if (found == declined_.end()) return std::nullopt;
  return found->second.reason;
}

void Visitors::greet(std::uint8_t purpose, Greeter greeter) {
  std::unique_lock lock(mutex_);
  if (greeter) {
    greeters_[purpose] = std::make_shared<const Greeter>(std::move(greeter));
    return;
  }
  greeters_.erase(purpose);
  greeted_.wait(lock, [this] { return !greeting_; });
}

}  // namespace seto
