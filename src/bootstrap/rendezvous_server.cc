#include "src/bootstrap/rendezvous_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/bootstrap/bootstrap.h"
#include "src/net/local_socket.h"

namespace seto {

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(const UniqueId& id, Deadline idle_until) {
  std::unique_ptr<RendezvousServer> server(new RendezvousServer(id, idle_until));
  SETO_ASSIGN(server->listener_, listen_local(id.socket_name, SocketKind::stream));
  server->stop_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!server->stop_.valid()) return socket_failure("cannot start the rendezvous");
  SETO_ASSIGN(server->thread_, start_thread("seto-rendezvous", [raw = server.get()] { raw->serve(); }));
  return server;
}

RendezvousServer::~RendezvousServer() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  static_cast<void>(!write(stop_.get(), &one, sizeof one));
  thread_.join();
}

void RendezvousServer::serve() {
  while (!ended()) {
    wait_for_events();
    for (auto& connection : connections_) {
      if (connection->rank < 0 && !connection->last_words && connection->hello_until.passed()) connection->gone = true;
    }
    room_.look_at_deadline();
    broadcast();
    for (auto& connection : connections_) flush(*connection);
    sweep();
  }
  connections_.clear();
  listener_.close();
  finished_.store(true, std::memory_order_release);
}

bool RendezvousServer::ended() {
  if (room_.served() && connections_.empty()) return true;
  if (!room_.broken().ok() && !failed_) {
    failed_ = true;
    end_until_ = Deadline::after_ms(kLatecomerMs);
  }
  if (stopping_) return everything_sent() || end_until_.passed();
  return failed_ && end_until_.passed();
}

void RendezvousServer::wait_for_events() {
  std::vector<pollfd> entries;
  const bool accepting = listener_.valid() && !stopping_ && stranger_count() < kStrangerLimit;
  entries.push_back({stopping_ ? -1 : stop_.get(), POLLIN, 0});
  entries.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
  for (const auto& connection : connections_) {
    const int events = connection->out.empty() ? POLLIN : POLLIN | POLLOUT;
    entries.push_back({connection->fd.get(), static_cast<short>(events), 0});
  }
  if (poll(entries.data(), entries.size(), sleep_ms()) <= 0) return;
  for (std::size_t index = 2; index < entries.size(); ++index) {
    if ((entries[index].revents & ~POLLOUT) != 0) read_from(*connections_[index - 2]);
  }
  if (entries[1].revents != 0) accept_all();
  if (entries[0].revents != 0) {
    stopping_ = true;
    end_until_ = Deadline::after_ms(kLastWordsMs);
  }
}

int RendezvousServer::sleep_ms() const {
  int sleep = room_.remaining_ms();
  if (failed_ || stopping_) sleep = std::min(sleep, end_until_.remaining_ms());
  for (const auto& connection : connections_) {
    if (connection->rank < 0) sleep = std::min(sleep, connection->hello_until.remaining_ms());
  }
  return sleep;
}

int RendezvousServer::stranger_count() const {
  return static_cast<int>(std::count_if(connections_.begin(), connections_.end(), [](const auto& one) { return one->rank < 0; }));
}

bool RendezvousServer::everything_sent() const {
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& one) { return one->out.empty(); });
}

void RendezvousServer::accept_all() {
  while (stranger_count() < kStrangerLimit) {
    PrivateFd fd(Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    if (!fd.valid()) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
      // Those in the kernel's queue are hung up on rather than left to their deadlines.
      room_.break_with(socket_failure("the rendezvous, in the process that made the unique id, cannot take more ranks"));
      listener_.close();
      return;
    }
    if (!check_same_user(fd.get()).ok()) continue;
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->fd = std::move(fd);
    read_from(*connections_.back());
  }
}

void RendezvousServer::read_from(Connection& connection) {
  std::array<char, 65'536> bytes;
  while (!connection.gone) {
    const ssize_t got = recv(connection.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      connection.gone = true;
      return;
    }
    connection.reader.append({bytes.data(), static_cast<std::size_t>(got)});
    Frame frame;
    auto outcome = connection.reader.next(frame);
    for (; outcome == FrameReader::Outcome::frame && !connection.gone; outcome = connection.reader.next(frame)) {
      handle(connection, frame);
    }
    if (outcome == FrameReader::Outcome::garbage) drop_garbage(connection);
  }
}

void RendezvousServer::handle(Connection& connection, const Frame& frame) {
  if (connection.last_words) return;
  if (connection.rank < 0) return greet(connection, frame);
  const auto contribution = decode_contribution(frame.body);
  if (frame.kind != FrameKind::contribution || !contribution) return drop_garbage(connection);
  room_.contribute(connection.rank, *contribution);
  broadcast();
}

void RendezvousServer::greet(Connection& connection, const Frame& frame) {
  const auto hello = decode_hello(frame.body);
  if (frame.kind != FrameKind::hello || !hello) return drop_garbage(connection);
  const Status answer = room_.admit(*hello);
  if (answer.ok()) {
    connection.rank = hello->rank;
    connection.reader.set_body_limit(kGatherMessageLimit + kContributionOverhead);
  } else {
    if (room_.broken().ok()) SETO_LOG(warn, "rendezvous: turned away a connection: %s", std::string(answer.text()).c_str());
    connection.out.push_back(std::make_shared<const std::string>(encode_failure(answer)));
    connection.last_words = true;
  }
  broadcast();
}

void RendezvousServer::drop_garbage(Connection& connection) {
  if (connection.gone) return;
  connection.gone = true;
  if (connection.rank >= 0) {
    room_.break_with(failure(Code::remote_error, "rank %d sent garbage to the rendezvous", connection.rank));
  } else {
    SETO_LOG(warn, "rendezvous: closed a connection that sent garbage");
  }
}

void RendezvousServer::broadcast() {
  auto bytes = room_.take_broadcast();
  if (!bytes) return;
  const auto shared = std::make_shared<const std::string>(std::move(*bytes));
  for (auto& connection : connections_) {
    if (connection->rank < 0 || connection->gone) continue;
    connection->out.push_back(shared);
    flush(*connection);
  }
}

void RendezvousServer::flush(Connection& connection) {
  while (!connection.out.empty() && !connection.gone) {
    const std::string& bytes = *connection.out.front();
    const ssize_t sent = send(connection.fd.get(), bytes.data() + connection.out_offset, bytes.size() - connection.out_offset,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
      connection.gone = true;
      return;
    }
    connection.out_offset += static_cast<std::size_t>(sent);
    if (connection.out_offset < bytes.size()) continue;
    connection.out.pop_front();
    connection.out_offset = 0;
  }
}

// Whoever is gone leaves the room; that may break it for the others.
void RendezvousServer::sweep() {
  for (auto& connection : connections_) {
    if (connection->last_words && connection->out.empty()) connection->gone = true;
    if (!connection->gone || connection->rank < 0) continue;
    room_.leave(connection->rank);
    connection->rank = -1;
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->gone; });
  broadcast();
}

}  // namespace seto
