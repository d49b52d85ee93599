#include "src/bootstrap/rendezvous/incoming_handshake.h"

namespace seto {

IncomingHandshake::Outcome IncomingHandshake::advance(const Secret& key, const Secret* presence) {
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
        reason_ = channel_.why();
        return Outcome::gone;
      case AuthProgress::decide:
        break;
    }
    const bool proven = channel_.handshake().stage() == AnswererHandshake::Stage::verdict_wanted;
    if (proven && presence_only_) return Outcome::gone;
    if (proven) {
      channel_.accept();
    } else if (!choose_key(key, presence)) {
      static_cast<void>(channel_.flush());  // the reason
      channel_.discard_unread();
      reason_ = failure(Code::remote_error, "it uses another secret than this job");
      return Outcome::gone;
    }
  }
}

bool IncomingHandshake::choose_key(const Secret& key, const Secret* presence) {
  const KeyId wanted = channel_.handshake().wanted_key();
  presence_only_ = presence != nullptr && wanted == key_id(*presence);
  key_known_ = !presence_only_ && wanted == key_id(key);
  other_key_ = !presence_only_ && !key_known_;
  if (other_key_) {
    channel_.refuse_unknown(key.none() ? AnswererHandshake::MissingKey::any_key : AnswererHandshake::MissingKey::this_key);
    return false;
  }
  channel_.set_key(presence_only_ ? *presence : key);
  return true;
}

}  // namespace seto
