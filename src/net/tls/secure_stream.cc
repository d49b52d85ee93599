#include "src/net/tls/secure_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace seto {

SecureStream& SecureStream::operator=(SecureStream&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    tls_ = std::move(other.tls_);
  }
  return *this;
}

void SecureStream::close() {
  tls_.reset();
  fd_.close();
}

Status SecureStream::encrypt(TlsSession::Role role, const TlsTrust& trust) {
  SETO_ASSIGN(tls_, TlsSession::create(fd_.get(), role, trust));
  return {};
}

ssize_t SecureStream::receive(void* to, std::size_t most) {
  const iovec part{to, most};
  if (tls_ != nullptr) return tls_->receive({&part, 1});
  ssize_t got = 0;
  do {
    got = recv(fd_.get(), to, most, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

ssize_t SecureStream::receive(std::span<const iovec> parts) {
  if (tls_ != nullptr) return tls_->receive(parts);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  ssize_t got = 0;
  do {
    got = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

ssize_t SecureStream::receive_held(std::span<const iovec> parts) {
  if (tls_ != nullptr) return tls_->receive_held(parts);
  errno = EAGAIN;
  return -1;
}

ssize_t SecureStream::send(std::string_view bytes) {
  const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  if (tls_ != nullptr) return tls_->send({&part, 1});
  ssize_t sent = 0;
  do {
    sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t SecureStream::send(std::span<const iovec> parts) {
  if (tls_ != nullptr) return tls_->send(parts);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  ssize_t sent = 0;
  do {
    sent = sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

bool SecureStream::send_whole(std::string_view bytes) { return send(bytes) == static_cast<ssize_t>(bytes.size()) && flush(); }

std::string SecureStream::failure_text(int error) const {
  return error == EBADMSG && tls_ != nullptr ? tls_->why() : std::strerror(error);
}

}  // namespace seto
