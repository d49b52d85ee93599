// What the rendezvous server says and hears.
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/rendezvous/rendezvous_server.h"
#include "src/bootstrap/tree/result_tree.h"

namespace seto {

void RendezvousServer::advance(ServerConnection& connection) {
  if (connection.stranger) {
    advance_stranger(connection);
  } else {
    flush(connection);
    read_from(connection);
  }
  if (!gone_.contains(connection.id)) watch(connection);
}

void RendezvousServer::advance_stranger(ServerConnection& connection) {
  MemberAnswer& stranger = *connection.stranger;
  const std::uint64_t before = stranger.bytes();
  const MemberAnswer::Outcome outcome = stranger.advance(options_.key, options_.presence ? &*options_.presence : nullptr);
  count(connection, stranger.bytes() - before);
  if (stranger.greeted() && !std::exchange(connection.greeted, true)) {
    strangers_.remove(connection.id);
    guests_.add(connection.id);
  }
  if (outcome == MemberAnswer::Outcome::more) return;
  if (outcome == MemberAnswer::Outcome::gone) {
    gone_.insert(connection.id);
    if (stranger.reason().ok()) return;
    if (stranger.has_another_key())
      unproven_ = "somebody at " + connection.who + " came with another secret than this job's, or for another job";
    say_of_stranger(connection.who, kUnproven + std::string(stranger.reason().text()));
    return;
  }
  connection.fd = stranger.take_fd();
  connection.stranger.reset();
  read_from(connection);
}

void RendezvousServer::read_from(ServerConnection& connection) {
  std::array<char, 65'536> bytes;
  while (!gone_.contains(connection.id)) {
    const ssize_t got = recv(connection.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      gone_.insert(connection.id);
      return;
    }
    count(connection, static_cast<std::uint64_t>(got));
    connection.reader.append({bytes.data(), static_cast<std::size_t>(got)});
    Frame frame;
    auto outcome = connection.reader.next(frame);
    while (outcome == FrameReader::Outcome::frame && !gone_.contains(connection.id)) {
      handle(connection, frame);
      outcome = connection.reader.next(frame);
    }
    if (outcome == FrameReader::Outcome::garbage) drop_garbage(connection);
  }
}

void RendezvousServer::handle(ServerConnection& connection, const Frame& frame) {
  if (connection.last_words) return;
  if (connection.gathering == nullptr) return greet(connection, frame);
  Gathering& gathering = *connection.gathering;
  if (frame.kind == FrameKind::ask && frame.body.empty()) return give_result(connection);
  const auto contribution = decode_contribution(frame.body);
  if (frame.kind != FrameKind::contribution || !contribution) return drop_garbage(connection);
  gathering.room.contribute(connection.rank, *contribution);
  announce(gathering);
}

void RendezvousServer::greet(ServerConnection& connection, const Frame& frame) {
  const auto hello = decode_hello(frame.body);
  if (frame.kind != FrameKind::hello || !hello) return drop_garbage(connection);
  auto gathering = gatherings_.find(*hello);
  if (!gathering.ok()) return turn_away(connection, gathering.status());
  RendezvousRoom& room = (*gathering)->room;
  const Status answer = room.admit(*hello);
  if (answer.ok()) {
    connection.gathering = *gathering;
    connection.rank = hello->rank;
    connection.reader.set_body_limit(kGatherMessageLimit + kContributionOverhead);
    guests_.remove(connection.id);
    (*gathering)->bytes += connection.stranger_bytes;
    (*gathering)->connections[hello->rank] = connection.id;
    if (!hello->contact.empty()) (*gathering)->contacts[hello->rank] = hello->contact;
  } else {
    turn_away(connection, answer);
  }
  announce(**gathering);
}

void RendezvousServer::turn_away(ServerConnection& connection, const Status& reason) {
  SETO_LOG(info, "rendezvous: turned away a connection from %s: %s", connection.who.c_str(), std::string(reason.text()).c_str());
  connection.last_words = true;
  connection.out.push_back(std::make_shared<const std::string>(encode_failure(reason)));
  flush(connection);
}

// A rank whose parent does not deliver. It has contributed to no later round, so the last result is what it lacks; it gets it
// even if the room has broken since, because the round had ended well for everybody.
void RendezvousServer::give_result(ServerConnection& connection) {
  Gathering& gathering = *connection.gathering;
  if (gathering.result == nullptr) return drop_garbage(connection);
  const Rank parent = tree_parent(connection.rank);
  if (!gathering.orphans[connection.rank]) {
    gathering.orphans[connection.rank] = true;
    SETO_LOG(info, "rendezvous: rank %d gets results from the root, as rank %d does not deliver them", connection.rank, parent);
    say(gathering, parent, std::make_shared<const std::string>(encode_orphan(connection.rank)));
  }
  say(gathering, connection.rank, gathering.result);
}

void RendezvousServer::drop_garbage(ServerConnection& connection) {
  if (!gone_.insert(connection.id).second) return;
  if (connection.gathering != nullptr) {
    connection.gathering->room.break_with(failure(Code::remote_error, "rank %d sent garbage to the rendezvous", connection.rank));
    announce(*connection.gathering);
  } else {
    say_of_stranger(connection.who, "that sent garbage");
  }
}

void RendezvousServer::say_of_stranger(const std::string& who, const std::string& what) {
  if (const auto line = stranger_log_.note(who, monotonic_ns(), what)) SETO_LOG(warn, "rendezvous: %s", line->c_str());
}

void RendezvousServer::announce(Gathering& gathering) {
  const auto announcement = gathering.room.take_announcement();
  if (!announcement) return;
  if (announcement->kind == FrameKind::result) return announce_result(gathering, *announcement);
  const bool ready = announcement->kind == FrameKind::ready;
  if (ready) unproven_.clear();  // whoever it was is not missed
  if (!ready) gathering.forget_at = Deadline::after_ms(kLatecomerMs);
  const auto shared = std::make_shared<const std::string>(ready ? encode_ready({}) : encode_failure(gathering.room.broken()));
  const auto members = gathering.connections;
  for (const auto& [rank, id] : members) {
    const std::string own = ready ? ready_for(gathering, rank) : std::string();
    say(gathering, rank, own.empty() ? shared : std::make_shared<const std::string>(own));
  }
}

// Empty where there is nothing of its own to say.
std::string RendezvousServer::ready_for(const Gathering& gathering, Rank rank) const {
  if (!has_tree(gathering.room.size())) return {};
  const auto parent = gathering.contacts.find(tree_parent(rank));
  return parent == gathering.contacts.end() ? std::string() : encode_ready(parent->second);
}

void RendezvousServer::announce_result(Gathering& gathering, const RendezvousRoom::Announcement& announcement) {
  auto bytes = std::make_shared<const std::string>(encode_result(FrameKind::result, announcement.messages));
  const bool by_tree = has_tree(gathering.room.size()) && bytes->size() > kStarResultSize;
  gathering.result.reset();
  if (by_tree) {
    bytes = std::make_shared<const std::string>(encode_result(FrameKind::tree_result, announcement.messages));
    gathering.result = bytes;
  }
  const auto complete = std::make_shared<const std::string>(encode_frame(FrameKind::complete, {}));
  const auto members = gathering.connections;
  for (const auto& [rank, id] : members) {
    const bool direct = !by_tree || tree_parent(rank) < 0 || gathering.orphans.contains(rank);
    say(gathering, rank, direct ? bytes : complete);
  }
}

void RendezvousServer::say(Gathering& gathering, Rank rank, std::shared_ptr<const std::string> bytes) {
  const auto member = gathering.connections.find(rank);
  if (member == gathering.connections.end()) return;
  ServerConnection& connection = *connections_.at(member->second);
  if (gone_.contains(connection.id)) return;
  connection.out.push_back(std::move(bytes));
  flush(connection);
}

void RendezvousServer::flush(ServerConnection& connection) {
  while (!connection.out.empty()) {
    const std::string& bytes = *connection.out.front();
    const ssize_t sent = send(connection.fd.get(), bytes.data() + connection.out_offset, bytes.size() - connection.out_offset,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      gone_.insert(connection.id);
      return;
    }
    count(connection, static_cast<std::uint64_t>(sent));
    connection.out_offset += static_cast<std::size_t>(sent);
    if (connection.out_offset < bytes.size()) continue;
    connection.out.pop_front();
    connection.out_offset = 0;
  }
  if (connection.last_words && connection.out.empty()) gone_.insert(connection.id);
  watch(connection);
}

}  // namespace seto
