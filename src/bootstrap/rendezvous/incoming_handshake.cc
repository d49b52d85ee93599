#include "src/bootstrap/rendezvous/incoming_handshake.h"

namespace seto {

IncomingHandshake::Outcome IncomingHandshake::advance(const Lock& lock, const Secret* presence) {
  while (true) {
    switch (channel_.advance()) {
      case AuthProgress::waiting:
        return Outcome::more;
      case AuthProgress::over:
        return Outcome::proven;
      case AuthProgress::closed:
        return Outcome::gone;
      case AuthProgress::failed:
        channel_.discard_unread();
        if (!presence_only_) reason_ = channel_.why();  // a peer that only asks need not fit
        return Outcome::gone;
      case AuthProgress::decide:
        break;
    }
    const bool proven = channel_.handshake().stage() == AnswererHandshake::Stage::verdict_wanted;
    if (proven && presence_only_) return Outcome::gone;
    if (proven) {
      channel_.accept();
    } else if (!choose_key(lock, presence)) {
      static_cast<void>(channel_.flush());  // the reason
      channel_.discard_unread();
      reason_ = failure(Code::remote_error, "it uses another secret than this job");
      return Outcome::gone;
    }
  }
}

bool IncomingHandshake::choose_key(const Lock& lock, const Secret* presence) {
  using MissingKey = AnswererHandshake::MissingKey;
  const AnswererHandshake& handshake = channel_.handshake();
  presence_only_ = presence != nullptr && handshake.names(*presence);
  if (presence_only_) {
    channel_.set_key(*presence);
    return true;
  }
  other_key_ = !handshake.names(lock.key);
  if (other_key_) {
    channel_.refuse_unknown(lock.key.none() ? MissingKey::any_key : MissingKey::this_key);
    return false;
  }
  key_known_ = lock.seen.add(handshake.hello());
  channel_.set_key(lock.key);
  return true;
}

}  // namespace seto
