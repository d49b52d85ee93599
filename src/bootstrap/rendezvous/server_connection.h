#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/fork.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/incoming_handshake.h"
#include "src/bootstrap/rendezvous/listeners.h"
#include "src/bootstrap/rendezvous/sessions.h"

namespace seto {

// A connection of the rendezvous server.
struct ServerConnection {
  ServerConnection(std::uint64_t its_id, Listeners::Caller caller, const TlsChoice& tls)
      : id(its_id), who(std::move(caller.who)), handshake(std::in_place, std::move(caller.fd), tls) {}

  std::uint64_t id;
  std::string who;
  std::optional<IncomingHandshake> handshake;  // until the connection is authenticated
  std::uint64_t handshake_bytes = 0;
  SecureStream fd;  // once it is authenticated
  FrameReader reader{kHelloBodySize};
  Session* session = nullptr;  // once it has sent hello
  Rank rank = -1;
  std::deque<std::shared_ptr<const std::string>> out;  // one copy of a result serves every rank
  std::size_t out_offset = 0;
  bool key_known = false;
  bool close_after_write = false;  // closed once `out` is written
  bool watched = false;
  bool watched_for_room = false;

  [[nodiscard]] int number() const { return handshake ? handshake->fd() : fd.get(); }
  [[nodiscard]] bool wants_to_write() const { return handshake ? handshake->wants_to_write() : !out.empty() || fd.unsent() > 0; }
};

}  // namespace seto
