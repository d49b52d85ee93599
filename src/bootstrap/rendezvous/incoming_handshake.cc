#include "src/bootstrap/rendezvous/incoming_handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace seto {

IncomingHandshake::Outcome IncomingHandshake::advance(const Lock& lock, const Secret* presence) {
  while (reason_.ok()) {
    if (!flush()) return Outcome::more;
    if (handshake_.stage() == AnswererHandshake::Stage::over) return Outcome::proven;
    std::array<char, 256> bytes;
    const std::size_t wanted = std::min(bytes.size(), handshake_.wanted());
    const ssize_t got = recv(fd_.get(), bytes.data(), wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Outcome::more;
    if (got <= 0) return Outcome::gone;
    bytes_ += static_cast<std::uint64_t>(got);
    reason_ = read_handshake({bytes.data(), static_cast<std::size_t>(got)}, lock, presence);
    if (presence_only_ && handshake_.proven()) return Outcome::gone;
    out_ += handshake_.take_out();
  }
  static_cast<void>(flush());  // the reason, for peers that have named the key
  return Outcome::gone;
}

Status IncomingHandshake::read_handshake(std::string_view bytes, const Lock& lock, const Secret* presence) {
  SETO_TRY(handshake_.feed(bytes));
  if (handshake_.stage() == AnswererHandshake::Stage::key_wanted) {
    presence_only_ = presence != nullptr && handshake_.names(*presence);
    if (presence_only_) {
      handshake_.set_key(*presence);
    } else if (handshake_.names(lock.key)) {
      handshake_.set_key(lock.key);
      key_known_ = lock.seen.add(handshake_.hello());
    } else {
      handshake_.refuse_unknown(lock.key.none() ? AnswererHandshake::MissingKey::any_key
                                                : AnswererHandshake::MissingKey::this_key);
      other_key_ = true;
      return failure(Code::remote_error, "it uses another secret than this job");
    }
  } else if (handshake_.stage() == AnswererHandshake::Stage::verdict_wanted && !presence_only_) {
    handshake_.accept();
  }
  return {};
}

// Returns false if the kernel's send buffer is full.
bool IncomingHandshake::flush() {
  while (!out_.empty()) {
    const ssize_t sent = send(fd_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return false;
    if (sent > 0) bytes_ += static_cast<std::uint64_t>(sent);
    out_.erase(0, sent < 0 ? out_.size() : static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace seto
