#include "src/bootstrap/rendezvous/outgoing_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/net/interfaces.h"
#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"

namespace seto {

MemberCall::MemberCall(Contact contact, Secret key, Claim claim)
    : contact_(std::move(contact)), key_(std::move(key)), claim_(claim) {}

void MemberCall::begin(Deadline local_until) {
  if (!contact_.socket_name.empty()) {
    Attempt& local = attempts_.emplace_back();
    started_ = 1;
    auto fd = connect_local(contact_.socket_name, SocketKind::stream, local_until);
    Status status = fd.ok() ? check_same_user(fd->get()) : fd.status();
    if (status.ok()) {
      prove(local, std::move(fd).value());
      contact_.addresses.clear();
    } else {
      // A name that somebody else has taken is as good as none.
      end(local, std::move(status));
      if (!contact_.addresses.empty()) {
        attempts_.clear();
        started_ = ended_ = 0;
      }
    }
  }
  auto own = contact_.addresses.empty() ? std::vector<Interface>{} : list_interfaces();
  for (const SocketAddress& address : contact_.addresses) {
    for (const SocketAddress& form : with_scopes(address, own.ok() ? *own : std::vector<Interface>{})) {
      attempts_.emplace_back().address = form;
    }
  }
  advance();
}

void MemberCall::prepare(std::vector<pollfd>& entries) const {
  for (const Attempt& attempt : attempts_) {
    const bool writes = attempt.stage == Stage::connecting || !attempt.out.empty();
    if (attempt.fd.valid()) entries.push_back({attempt.fd.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
}

int MemberCall::wait_ms() const { return started_ < attempts_.size() ? next_.remaining_ms() : 1'000; }

void MemberCall::advance() {
  for (Attempt& attempt : attempts_) {
    if (!member_.valid()) advance(attempt);
  }
  if (!member_.valid()) start_due();
}

// While nothing is under way the next one need not wait for its time.
void MemberCall::start_due() {
  while (started_ < attempts_.size() && (next_.passed() || ended_ == started_)) {
    next_ = Deadline::after_ms(kStaggerMs);
    start(attempts_[started_++]);
  }
}

void MemberCall::start(Attempt& attempt) {
  auto fd = begin_connect(*attempt.address);
  if (!fd.ok()) return end(attempt, fd.status());
  attempt.fd = std::move(fd).value();
  attempt.stage = Stage::connecting;
}

void MemberCall::prove(Attempt& attempt, PrivateFd fd) {
  reached_ = true;
  attempt.fd = std::move(fd);
  attempt.handshake.emplace(key_, claim_);
  attempt.out = attempt.handshake->take_out();
  attempt.stage = Stage::proving;
}

void MemberCall::advance(Attempt& attempt) {
  if (attempt.stage == Stage::connecting) {
    pollfd entry{attempt.fd.get(), POLLOUT, 0};
    if (poll(&entry, 1, 0) <= 0) return;
    if (Status connected = end_connect(attempt.fd, *attempt.address); !connected.ok()) return end(attempt, std::move(connected));
    prove(attempt, std::move(attempt.fd));
  }
  while (attempt.stage == Stage::proving) {
    if (!flush(attempt)) return;
    std::array<char, 512> bytes;
    const std::size_t wanted = std::min(bytes.size(), attempt.handshake->wanted());
    const ssize_t got = recv(attempt.fd.get(), bytes.data(), wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    hung_up_ = hung_up_ || got <= 0;
    if (got <= 0) return end(attempt, failure(Code::remote_error, "it hung up in the middle of the handshake"));
    attempt.answered = true;
    Status heard = attempt.handshake->feed({bytes.data(), static_cast<std::size_t>(got)});
    if (!heard.ok()) return end(attempt, std::move(heard));
    attempt.out += attempt.handshake->take_out();
    if (!attempt.handshake->over()) continue;
    member_ = std::move(attempt.fd);
    attempt.stage = Stage::ended;
  }
}

// False: not everything could be sent. Of a peer that hung up the last words are still to be read.
bool MemberCall::flush(Attempt& attempt) {
  while (!attempt.out.empty()) {
    const ssize_t sent = send(attempt.fd.get(), attempt.out.data(), attempt.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    attempt.out.erase(0, sent < 0 ? attempt.out.size() : static_cast<std::size_t>(sent));
  }
  return true;
}

void MemberCall::end(Attempt& attempt, Status reason) {
  attempt.stage = Stage::ended;
  attempt.fd.close();
  attempt.reason = std::move(reason);
  ++ended_;
}

bool MemberCall::proven() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.handshake && one.handshake->proven(); });
}

bool MemberCall::refused() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.handshake && one.handshake->refused(); });
}

// A text that was heard, or that this machine lacks something, is worth more than any number of addresses at which nobody was.
Result<PrivateFd> MemberCall::take() {
  if (member_.valid()) return std::move(member_);
  if (attempts_.size() == 1 && !attempts_.front().reason.ok()) return attempts_.front().reason;
  std::string texts;
  for (const Attempt& attempt : attempts_) {
    if (!attempt.reason.ok() && (attempt.answered || attempt.reason.code() == Code::unavailable)) return attempt.reason;
    if (!texts.empty()) texts += "; ";
    if (!attempt.reason.ok()) {
      texts += attempt.reason.text();
    } else if (attempt.address) {
      texts += no_answer(*attempt.address).text();
    } else {
      texts += "the local socket does not answer";
    }
  }
  if (attempts_.empty()) texts = "it has no address";
  return failure(ended_ == attempts_.size() ? Code::remote_error : Code::timeout, "%s", texts.c_str());
}

}  // namespace seto
