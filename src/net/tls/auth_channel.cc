#include "src/net/tls/auth_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "src/base/check.h"
#include "src/net/tcp_socket.h"

namespace seto {
namespace {

// A caller's first message of TLS has about 250 bytes.
constexpr std::size_t kEarlyLimit = 2'048;

bool is_loopback(const SocketAddress& address) {
  if (address.family == AddressFamily::ipv4) return address.bytes[0] == 127;
  return std::all_of(address.bytes.begin(), address.bytes.end() - 1, [](std::uint8_t byte) { return byte == 0; }) &&
         address.bytes.back() == 1;
}

}  // namespace

bool encrypts(TlsMode mode, int fd) {
  if (mode == TlsMode::off) return false;
  auto here = local_address(fd);
  auto there = remote_address(fd);
  if (!here.ok() || !there.ok()) return mode == TlsMode::always;
  if (mode == TlsMode::always) return true;
  return !is_loopback(here.value()) && !(here->family == there->family && here->bytes == there->bytes);
}

bool AuthChannel::flush() {
  while (!out_.empty()) {
    ssize_t sent = 0;
    if (secure_) {
      sent = stream_.send(out_);
    } else {
      do {
        sent = ::send(stream_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      } while (sent < 0 && errno == EINTR);
    }
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent > 0) bytes_ += static_cast<std::uint64_t>(sent);
    out_.erase(0, sent < 0 ? out_.size() : static_cast<std::size_t>(sent));  // the peer's reason may still be readable
  }
  return stream_.flush() || errno != EAGAIN;
}

ssize_t AuthChannel::read(char* to, std::size_t most) {
  ssize_t got = 0;
  if (secure_) {
    got = stream_.receive(to, most);
    if (got < 0 && errno == EBADMSG) why_ = failure(Code::remote_error, "%s", stream_.failure_text(EBADMSG).c_str());
  } else {
    do {
      got = recv(stream_.get(), to, most, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
  }
  if (got > 0) bytes_ += static_cast<std::uint64_t>(got);
  return got;
}

bool AuthChannel::bring_up(TlsSession::Role role, const Secret& key, Secret& binding) {
  if (!stream_.encrypted()) {
    why_ = stream_.encrypt(role, {key, identity_});
    if (!why_.ok()) return false;
    stream_.add_early(std::exchange(early_, {}));
  }
  auto up = stream_.advance();
  if (!up.ok()) why_ = up.status();
  if (!up.ok() || !up.value()) return false;
  auto bound = stream_.channel_binding();
  if (!bound.ok()) why_ = bound.status();
  if (!bound.ok()) return false;
  binding = bound.value();
  secure_ = true;
  return true;
}

CallerChannel::CallerChannel(PrivateFd fd, const Secret& key, const Claim& claim, ChannelTerms terms)
    : AuthChannel(std::move(fd), terms.tls.identity), encrypted_(terms.encrypted), handshake_(key, claim, {}, terms) {
  out_ = handshake_.take_out();
}

AuthProgress CallerChannel::advance() {
  while (why_.ok()) {
    if (!flush()) return AuthProgress::waiting;
    if (handshake_.over()) return AuthProgress::over;
    if (encrypted_ && !std::exchange(started_, true)) {
      why_ = stream_.encrypt(TlsSession::Role::caller, {handshake_.tls_key(), identity_});
      if (!why_.ok()) break;
      why_ = stream_.start();
      if (!why_.ok()) return AuthProgress::closed;  // the socket: nothing has been received yet
    }
    if (handshake_.wants_channel()) {
      Secret binding;
      if (bring_up(TlsSession::Role::caller, handshake_.tls_key(), binding)) {
        handshake_.bind_channel(binding);
        out_ = handshake_.take_out();
      } else if (stream_.ended()) {
        why_ = {};
        return AuthProgress::closed;
      } else if (why_.ok()) {
        return AuthProgress::waiting;
      }
      continue;
    }
    std::array<char, kVerdictSize> bytes;
    const ssize_t got = read(bytes.data(), std::min(bytes.size(), handshake_.wanted()));
    if (got < 0 && errno == EAGAIN) return AuthProgress::waiting;
    if (!why_.ok()) break;
    if (got <= 0) return AuthProgress::closed;
    why_ = handshake_.feed({bytes.data(), static_cast<std::size_t>(got)});
    out_ += handshake_.take_out();
  }
  return AuthProgress::failed;
}

AuthProgress AnswererChannel::advance() {
  using Stage = AnswererHandshake::Stage;
  while (why_.ok()) {
    if (!flush()) return AuthProgress::waiting;
    const Stage stage = handshake_.stage();
    if (stage == Stage::over) return AuthProgress::over;
    if (stage == Stage::key_wanted || stage == Stage::verdict_wanted) return AuthProgress::decide;
    if (stage == Stage::channel) {
      Secret binding;
      if (bring_up(TlsSession::Role::answerer, handshake_.tls_key(), binding)) {
        handshake_.bind_channel(binding);
      } else if (stream_.ended()) {
        why_ = {};
        return AuthProgress::closed;
      } else if (why_.ok()) {
        return AuthProgress::waiting;
      }
      continue;
    }
    std::array<char, kHelloSize> bytes;
    const ssize_t got = read(bytes.data(), std::min(bytes.size(), handshake_.wanted()));
    if (got < 0 && errno == EAGAIN) return AuthProgress::waiting;
    if (!why_.ok()) break;
    if (got <= 0) return AuthProgress::closed;
    why_ = handshake_.feed({bytes.data(), static_cast<std::size_t>(got)});
    take_out();
  }
  static_cast<void>(flush());  // the reason, for the peer
  return AuthProgress::failed;
}

AuthProgress AnswererChannel::wait_for_key() {
  while (true) {
    std::array<char, kEarlyLimit> bytes;
    const bool may_come = handshake_.encrypted();
    const ssize_t got = recv(stream_.get(), bytes.data(), may_come ? bytes.size() : 1, MSG_DONTWAIT | (may_come ? 0 : MSG_PEEK));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return AuthProgress::waiting;
    if (got <= 0) return AuthProgress::closed;
    early_.append(bytes.data(), static_cast<std::size_t>(got));
    if (may_come && early_.size() <= kEarlyLimit) continue;
    why_ = failure(Code::remote_error, "it sent data out of turn");
    return AuthProgress::failed;
  }
}

void AnswererChannel::discard_unread() const {
  std::array<char, 4096> bytes;
  static_cast<void>(recv(stream_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
}

}  // namespace seto
