#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "src/base/fork.h"
#include "src/bootstrap/rendezvous/listeners.h"
#include "src/bootstrap/rendezvous/frames.h"
#include "src/bootstrap/rendezvous/sessions.h"
#include "src/bootstrap/rendezvous/incoming_handshake.h"

namespace seto {

// What a rendezvous server knows of one caller.
struct ServerConnection {
  ServerConnection(std::uint64_t its_id, Doors::Caller caller)
      : id(its_id), who(std::move(caller.who)), stranger(std::move(caller.fd)) {}

  std::uint64_t id;
  std::string who;
  std::optional<MemberAnswer> stranger;  // until it has proved its membership
  std::uint64_t stranger_bytes = 0;
  PrivateFd fd;  // from then on
  FrameReader reader{kHelloBodySize};
  Gathering* gathering = nullptr;  // once it has said hello
  Rank rank = -1;
  std::deque<std::shared_ptr<const std::string>> out;  // one copy of a result serves every rank
  std::size_t out_offset = 0;
  bool greeted = false;
  bool last_words = false;  // closed once `out` is written
  bool watched = false;
  bool watched_for_room = false;

  [[nodiscard]] int number() const { return stranger ? stranger->fd() : fd.get(); }
  [[nodiscard]] bool wants_to_write() const { return stranger ? stranger->wants_to_write() : !out.empty(); }
};

}  // namespace seto
