#include "src/control/network/dialer.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/control/network/accepted_peers.h"
#include "src/control/network/listen_address.h"
#include "src/net/tcp_socket.h"

namespace seto {

Dialer::Dialer(const Target& target) : key_(target.key), claim_(target.claim) {
  for (const SocketAddress& address : target.addresses) {
    Attempt attempt;
    attempt.address = address;
    attempts_.push_back(std::move(attempt));
  }
}

Result<std::optional<PrivateFd>> Dialer::advance(int wait_ms) {
  start_due();
  SETO_TRY(broken_);
  std::vector<pollfd> entries;
  std::vector<Attempt*> of_entries;
  for (Attempt& attempt : attempts_) {
    if (!attempt.active()) continue;
    entries.push_back({attempt.fd.get(), static_cast<short>(attempt.handshake ? POLLIN : POLLOUT), 0});
    of_entries.push_back(&attempt);
  }
  if (next_ < attempts_.size()) wait_ms = std::min(wait_ms, next_start_.remaining_ms());
  const int ready = entries.empty() ? 0 : poll(entries.data(), entries.size(), wait_ms);
  for (std::size_t index = 0; ready > 0 && index < entries.size(); ++index) {
    Attempt& attempt = *of_entries[index];
    if (entries[index].revents == 0 || attempt.ended) continue;
    SETO_TRY(handle(attempt));
    if (attempt.handshake && attempt.handshake->accepted()) return std::optional<PrivateFd>(std::move(attempt.fd));
  }
  if (all_ended()) return failure(Code::remote_error, "%s", report().c_str());
  return std::optional<PrivateFd>();
}

void Dialer::start_due() {
  while (next_ < attempts_.size() && !found_) {
    const bool idle = std::none_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.active(); });
    if (!idle && !next_start_.passed()) return;
    start(attempts_[next_++]);
    next_start_ = Deadline::after_ms(kDialStaggerMs);
  }
}

void Dialer::start(Attempt& attempt) {
  attempt.started = true;
  auto fd = begin_connect(attempt.address);
  if (fd.ok()) {
    attempt.fd = std::move(fd).value();
    return;
  }
  const bool alone = std::none_of(attempts_.begin(), attempts_.end(),
                                  [&](const Attempt& other) { return &other != &attempt && other.active(); });
  if (alone && fd.status().code() == Code::unavailable) broken_ = fd.status();
  attempt.not_listening = fd.status().code() != Code::unavailable;  // without a descriptor the peer was not contacted
  end(attempt, fd.status());
}

void Dialer::end(Attempt& attempt, Status why) {
  attempt.ended = true;
  attempt.why = std::move(why);
  attempt.fd.close();
}

// A failure ends the attempts at all addresses.
Status Dialer::handle(Attempt& attempt) {
  if (attempt.handshake) return read_handshake(attempt);
  if (Status connected = end_connect(attempt.fd, attempt.address); !connected.ok()) {
    attempt.not_listening = true;
    end(attempt, std::move(connected));
    return {};
  }
  attempt.handshake.emplace(key_, claim_);
  if (!send_whole(attempt.fd.get(), attempt.handshake->take_out())) {
    attempt.may_change = true;
    end(attempt, failure(Code::remote_error, "%s closed the connection at once", to_text(attempt.address).c_str()));
  }
  return {};
}

Status Dialer::read_handshake(Attempt& attempt) {
  while (attempt.handshake->wanted() > 0) {
    std::array<char, kVerdictSize> bytes;
    const ssize_t got = recv(attempt.fd.get(), bytes.data(), std::min(bytes.size(), attempt.handshake->wanted()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return {};
    if (got <= 0) {
      attempt.may_change = true;
      end(attempt, failure(Code::remote_error, "%s closed the connection", to_text(attempt.address).c_str()));
      return {};
    }
    SETO_TRY(feed(attempt, {bytes.data(), static_cast<std::size_t>(got)}));
    if (attempt.ended) return {};
  }
  return {};
}

// The first address that authenticates is final, also if it refuses then.
Status Dialer::feed(Attempt& attempt, std::string_view bytes) {
  CallerHandshake& handshake = *attempt.handshake;
  Status fed = handshake.feed(bytes);
  if (!fed.ok() && handshake.proven()) {
    refused_ = true;
    return fed;
  }
  if (!fed.ok()) {
    attempt.may_change = handshake.key_unknown();
    end(attempt, failure(Code::remote_error, "%s: %s", to_text(attempt.address).c_str(), std::string(fed.text()).c_str()));
    return {};
  }
  if (handshake.proven() && !found_) {
    found_ = attempt.address;
    keep_only(attempt);
  }
  if (const std::string out = handshake.take_out(); !out.empty() && !send_whole(attempt.fd.get(), out)) {
    attempt.may_change = true;
    end(attempt, failure(Code::remote_error, "%s closed the connection", to_text(attempt.address).c_str()));
  }
  return {};
}

void Dialer::keep_only(const Attempt& attempt) {
  for (Attempt& other : attempts_)
    if (&other != &attempt && !other.ended)
      end(other, failure(Code::remote_error, "%s was not needed", to_text(other.address).c_str()));
  next_ = attempts_.size();
}

bool Dialer::all_ended() const {
  return std::all_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.ended; });
}

bool Dialer::none_listening() const {
  return std::all_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& attempt) { return attempt.ended && attempt.not_listening; });
}

bool Dialer::key_unknown() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& attempt) { return attempt.handshake && attempt.handshake->key_unknown(); });
}

bool Dialer::may_change() const {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.may_change; });
}

bool Dialer::hopeless() const {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return attempt.ended; }) &&
         std::none_of(attempts_.begin(), attempts_.end(),
                      [](const Attempt& attempt) { return attempt.active() && attempt.handshake; });
}

std::string Dialer::report() const {
  std::string text;
  for (const Attempt& attempt : attempts_) {
    if (!text.empty()) text += "; ";
    if (attempt.ended) {
      text += attempt.why.text();
    } else if (attempt.handshake) {
      text += to_text(attempt.address) +
              (attempt.handshake->proven() ? " did not accept or refuse the connection" : " did not prove who it is");
    } else {
      text += no_answer(attempt.address).text();
    }
  }
  return text;
}

}  // namespace seto
