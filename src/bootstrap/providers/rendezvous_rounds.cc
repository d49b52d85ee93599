// The frames that the rendezvous server sends and receives in each round.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/rendezvous/rendezvous_server.h"
#include "src/bootstrap/tree/result_tree.h"

namespace seto {
namespace {

// The rank is a claim of the peer without a proof.
std::string text_of_caller(const std::string& who, const IncomingHandshake& handshake) {
  const std::uint64_t rank = handshake.claim().caller_context;
  const bool claims = rank < static_cast<std::uint64_t>(kBootstrapRankLimit);
  return "a process at " + who + (claims ? " that claims to be rank " + std::to_string(rank) : std::string());
}

std::string text_of_unproven(const std::string& who, const IncomingHandshake& handshake, bool without_secret) {
  std::string text = text_of_caller(who, handshake);
  if (handshake.has_no_key())
    text += " connected without a secret, but this job has one";
  else if (without_secret)
    text += " connected with a secret, but this job has none";
  else
    text += " connected with another secret than this job's, without one, or for another job";
  return text + ": set SETO_SECRET_FILE or SETO_SECRET to the same secret for every rank, or for none";
}

}  // namespace

void RendezvousServer::advance(ServerConnection& connection) {
  if (connection.handshake) {
    advance_handshake(connection);
  } else {
    flush(connection);
    read_from(connection);
  }
  if (!closed_.contains(connection.id)) watch(connection);
}

void RendezvousServer::advance_handshake(ServerConnection& connection) {
  IncomingHandshake& handshake = *connection.handshake;
  const std::uint64_t before = handshake.bytes();
  const IncomingHandshake::Outcome outcome =
      handshake.advance({options_.key, seen_}, options_.presence ? &*options_.presence : nullptr);
  count(connection, handshake.bytes() - before);
  const bool member = handshake.key_known() || outcome == IncomingHandshake::Outcome::proven;
  if (member && !std::exchange(connection.key_known, true)) {
    unauthenticated_.remove(connection.id);
    key_known_.add(connection.id);
  }
  if (outcome == IncomingHandshake::Outcome::more) return;
  if (outcome == IncomingHandshake::Outcome::gone) {
    closed_.insert(connection.id);
    if (handshake.reason().ok()) return;
    if (handshake.has_other_key())
      unproven_ = text_of_unproven(connection.who, handshake, options_.key.none());
    else if (handshake.key_known())
      unproven_ = text_of_caller(connection.who, handshake) + " was refused: " + std::string(handshake.reason().text());
    log_unauthenticated(connection.who, kUnproven + std::string(handshake.reason().text()));
    return;
  }
  connection.fd = handshake.take_stream();
  connection.handshake.reset();
  read_from(connection);
}

void RendezvousServer::read_from(ServerConnection& connection) {
  std::array<char, 65'536> bytes;
  while (!closed_.contains(connection.id)) {
    const ssize_t got = connection.fd.receive(bytes.data(), bytes.size());
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      closed_.insert(connection.id);
      return;
    }
    count(connection, static_cast<std::uint64_t>(got));
    connection.reader.append({bytes.data(), static_cast<std::size_t>(got)});
    Frame frame;
    auto outcome = connection.reader.next(frame);
    while (outcome == FrameReader::Outcome::frame && !closed_.contains(connection.id)) {
      handle(connection, frame);
      outcome = connection.reader.next(frame);
    }
    if (outcome == FrameReader::Outcome::garbage) reject_malformed(connection);
  }
}

void RendezvousServer::handle(ServerConnection& connection, const Frame& frame) {
  if (connection.close_after_write) return;
  if (connection.session == nullptr) return handle_hello(connection, frame);
  Session& session = *connection.session;
  if (frame.kind == FrameKind::ask && frame.body.empty()) return give_result(connection);
  const auto contribution = decode_contribution(frame.body);
  if (frame.kind != FrameKind::contribution || !contribution) return reject_malformed(connection);
  session.state.contribute(connection.rank, *contribution);
  announce(session);
}

void RendezvousServer::handle_hello(ServerConnection& connection, const Frame& frame) {
  const auto hello = decode_hello(frame.body);
  if (frame.kind != FrameKind::hello || !hello) return reject_malformed(connection);
  auto session = sessions_.find(*hello);
  if (!session.ok()) return reject(connection, session.status());
  SessionState& state = (*session)->state;
  const Status answer = state.admit(*hello);
  if (answer.ok()) {
    connection.session = *session;
    connection.rank = hello->rank;
    connection.reader.set_body_limit(kGatherMessageLimit + kContributionOverhead);
    key_known_.remove(connection.id);
    (*session)->bytes += connection.handshake_bytes;
    (*session)->connections[hello->rank] = connection.id;
    if (!hello->address.empty()) (*session)->addresses[hello->rank] = hello->address;
  } else {
    reject(connection, answer);
  }
  announce(**session);
}

void RendezvousServer::reject(ServerConnection& connection, const Status& reason) {
  SETO_LOG(info, "rendezvous: rejected a connection from %s: %s", connection.who.c_str(), std::string(reason.text()).c_str());
  connection.close_after_write = true;
  connection.out.push_back(std::make_shared<const std::string>(encode_failure(reason)));
  flush(connection);
}

// Serves a rank whose parent does not deliver. That rank has contributed to no later round, so it needs the result of the last
// one. It gets the result even if the session has failed since, because that round had succeeded for all ranks.
void RendezvousServer::give_result(ServerConnection& connection) {
  Session& session = *connection.session;
  if (session.result == nullptr) return reject_malformed(connection);
  const Rank parent = tree_parent(connection.rank);
  if (!session.orphans[connection.rank]) {
    session.orphans[connection.rank] = true;
    SETO_LOG(info, "rendezvous: rank %d gets results from the root, because rank %d does not deliver them", connection.rank,
             parent);
    send_to(session, parent, std::make_shared<const std::string>(encode_orphan(connection.rank)));
  }
  send_to(session, connection.rank, session.result);
}

void RendezvousServer::reject_malformed(ServerConnection& connection) {
  if (!closed_.insert(connection.id).second) return;
  if (connection.session != nullptr) {
    connection.session->state.break_with(
        failure(Code::remote_error, "rank %d sent malformed data to the rendezvous", connection.rank));
    announce(*connection.session);
  } else {
    log_unauthenticated(connection.who, "that sent malformed data");
  }
}

void RendezvousServer::log_unauthenticated(const std::string& who, const std::string& what) {
  if (const auto line = unauthenticated_log_.note(who, monotonic_ns(), what)) SETO_LOG(warn, "rendezvous: %s", line->c_str());
}

void RendezvousServer::announce(Session& session) {
  const auto announcement = session.state.take_announcement();
  if (!announcement) return;
  if (announcement->kind == FrameKind::result) return announce_result(session, *announcement);
  const bool ready = announcement->kind == FrameKind::ready;
  if (ready) unproven_.clear();  // no rank is missing, so the rejected connection explains nothing
  if (!ready) session.forget_at = Deadline::after_ms(kLateRankMs);
  const auto shared = std::make_shared<const std::string>(ready ? encode_ready({}) : encode_failure(session.state.broken()));
  const auto members = session.connections;
  for (const auto& [rank, id] : members) {
    const std::string own = ready ? ready_for(session, rank) : std::string();
    send_to(session, rank, own.empty() ? shared : std::make_shared<const std::string>(own));
  }
}

// Empty where this rank needs no frame of its own.
std::string RendezvousServer::ready_for(const Session& session, Rank rank) const {
  if (!has_tree(session.state.size())) return {};
  const auto parent = session.addresses.find(tree_parent(rank));
  return parent == session.addresses.end() ? std::string() : encode_ready(parent->second);
}

void RendezvousServer::announce_result(Session& session, const SessionState::Announcement& announcement) {
  auto bytes = std::make_shared<const std::string>(encode_result(FrameKind::result, announcement.messages));
  const bool by_tree = has_tree(session.state.size()) && bytes->size() > kStarResultSize;
  session.result.reset();
  if (by_tree) {
    bytes = std::make_shared<const std::string>(encode_result(FrameKind::tree_result, announcement.messages));
    session.result = bytes;
  }
  const auto complete = std::make_shared<const std::string>(encode_frame(FrameKind::complete, {}));
  const auto members = session.connections;
  for (const auto& [rank, id] : members) {
    const bool direct = !by_tree || tree_parent(rank) < 0 || session.orphans.contains(rank);
    send_to(session, rank, direct ? bytes : complete);
  }
}

void RendezvousServer::send_to(Session& session, Rank rank, std::shared_ptr<const std::string> bytes) {
  const auto member = session.connections.find(rank);
  if (member == session.connections.end()) return;
  ServerConnection& connection = *connections_.at(member->second);
  if (closed_.contains(connection.id)) return;
  connection.out.push_back(std::move(bytes));
  flush(connection);
}

void RendezvousServer::flush(ServerConnection& connection) {
  while (!connection.out.empty()) {
    const std::string& bytes = *connection.out.front();
    const ssize_t sent = connection.fd.send(std::string_view(bytes).substr(connection.out_offset));
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      closed_.insert(connection.id);
      return;
    }
    count(connection, static_cast<std::uint64_t>(sent));
    connection.out_offset += static_cast<std::size_t>(sent);
    if (connection.out_offset < bytes.size()) continue;
    connection.out.pop_front();
    connection.out_offset = 0;
  }
  static_cast<void>(connection.fd.flush());  // a failure is found by the next read
  if (connection.close_after_write && !connection.wants_to_write()) closed_.insert(connection.id);
  watch(connection);
}

}  // namespace seto
