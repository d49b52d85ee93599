#include "src/bootstrap/rendezvous/outgoing_connection.h"

#include <algorithm>
#include <utility>

#include "src/net/interfaces.h"
#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"

namespace seto {

OutgoingConnection::OutgoingConnection(RendezvousAddress address, Secret key, Claim claim, const TlsChoice& tls)
    : address_(std::move(address)), key_(std::move(key)), claim_(claim), tls_(tls) {}

void OutgoingConnection::begin(Deadline local_until) {
  if (!address_.socket_name.empty()) {
    Attempt& local = attempts_.emplace_back();
    started_ = 1;
    auto fd = connect_local(address_.socket_name, SocketKind::stream, local_until);
    Status status = fd.ok() ? check_same_user(fd->get()) : fd.status();
    if (status.ok()) {
      prove(local, std::move(fd).value());
      address_.addresses.clear();
    } else {
      // A foreign process that has taken the name counts like an absent one.
      end(local, std::move(status));
      if (!address_.addresses.empty()) {
        attempts_.clear();
        started_ = ended_ = 0;
      }
    }
  }
  auto own = address_.addresses.empty() ? std::vector<Interface>{} : list_interfaces();
  for (const SocketAddress& address : address_.addresses) {
    for (const SocketAddress& form : with_scopes(address, own.ok() ? *own : std::vector<Interface>{})) {
      attempts_.emplace_back().address = form;
    }
  }
  advance();
}

void OutgoingConnection::prepare(std::vector<pollfd>& entries) const {
  for (const Attempt& attempt : attempts_) {
    if (attempt.stage == Stage::connecting) entries.push_back({attempt.fd.get(), POLLOUT, 0});
    if (attempt.stage != Stage::proving) continue;
    entries.push_back({attempt.channel->fd(), static_cast<short>(attempt.channel->wants_to_write() ? POLLOUT : POLLIN), 0});
  }
}

int OutgoingConnection::wait_ms() const { return started_ < attempts_.size() ? next_.remaining_ms() : 1'000; }

void OutgoingConnection::advance() {
  for (Attempt& attempt : attempts_) {
    if (!member_.valid()) advance(attempt);
  }
  if (!member_.valid()) start_due();
}

// While no attempt is under way, the next one starts at once.
void OutgoingConnection::start_due() {
  while (started_ < attempts_.size() && (next_.passed() || ended_ == started_)) {
    next_ = Deadline::after_ms(kStaggerMs);
    start(attempts_[started_++]);
  }
}

void OutgoingConnection::start(Attempt& attempt) {
  auto fd = begin_connect(*attempt.address);
  if (!fd.ok()) return end(attempt, fd.status());
  attempt.fd = std::move(fd).value();
  attempt.stage = Stage::connecting;
}

void OutgoingConnection::prove(Attempt& attempt, PrivateFd fd) {
  reached_ = true;
  const ChannelTerms terms{tls_, attempt.address && !plain_ && encrypts(tls_.mode, fd.get())};
  attempt.channel.emplace(std::move(fd), key_, claim_, terms);
  attempt.stage = Stage::proving;
}

void OutgoingConnection::advance(Attempt& attempt) {
  if (attempt.stage == Stage::connecting) {
    pollfd entry{attempt.fd.get(), POLLOUT, 0};
    if (poll(&entry, 1, 0) <= 0) return;
    if (Status connected = end_connect(attempt.fd, *attempt.address); !connected.ok()) return end(attempt, std::move(connected));
    prove(attempt, std::move(attempt.fd));
  }
  if (attempt.stage != Stage::proving) return;
  const AuthProgress progress = attempt.channel->advance();
  if (progress == AuthProgress::over) {
    member_ = attempt.channel->take_stream();
    attempt.stage = Stage::ended;
  } else if (progress == AuthProgress::closed) {
    hung_up_ = true;
    end(attempt, failure(Code::remote_error, "the peer closed the connection during the handshake"));
  } else if (progress == AuthProgress::failed) {
    attempt.answered = true;
    end(attempt, attempt.channel->why());
  }
}

void OutgoingConnection::end(Attempt& attempt, Status reason) {
  attempt.stage = Stage::ended;
  attempt.fd.close();
  if (attempt.channel) attempt.channel->close();
  attempt.reason = std::move(reason);
  ++ended_;
}

bool OutgoingConnection::proven() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.channel && one.channel->handshake().proven(); });
}

bool OutgoingConnection::refused() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.channel && one.channel->handshake().refused(); });
}

bool OutgoingConnection::key_unknown() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.channel && one.channel->handshake().key_unknown(); });
}

// A reason that a peer sent, or a shortage of this machine, explains more than a list of addresses at which no process listened.
Result<SecureStream> OutgoingConnection::take() {
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
  if (attempts_.empty()) texts = "the server has no address";
  return failure(ended_ == attempts_.size() ? Code::remote_error : Code::timeout, "%s", texts.c_str());
}

}  // namespace seto
