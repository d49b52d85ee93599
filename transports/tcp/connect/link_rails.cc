#include "transports/tcp/connect/link_rails.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/net/interfaces.h"
#include "src/net/tcp_socket.h"

namespace seto::tcp {
namespace {

// The interface that has the own address of a socket; 0: unknown.
std::uint32_t interface_of(int socket) {
  const Result<SocketAddress> own = local_address(socket);
  const Result<std::vector<Interface>> all = list_interfaces();
  if (!own.ok() || !all.ok()) return 0;
  for (const Interface& one : all.value())
    for (const SocketAddress& address : one.addresses)
      if (address.with_port(0) == own.value().with_port(0)) return one.index;
  return 0;
}

}  // namespace

std::shared_ptr<AttemptRails> AttemptRails::create(Setup setup) {
  auto rails = std::make_shared<AttemptRails>(std::move(setup));
  const Setup& its = rails->setup_;
  rails->handler_ = its.channels->handlers().add(
      {its.attempt, handler_of(its.own)},
      {[] { return std::string(); },
       [raw = rails.get()](std::uint32_t from, std::string_view message) { raw->receive(from, message); }});
  return rails;
}

std::shared_ptr<LinkRails> AttemptRails::add(std::uint32_t peer, PipeMaker::Role role) {
  auto rails = std::make_shared<LinkRails>(shared_from_this(), peer, role);
  const std::lock_guard lock(mutex_);
  all_[peer] = rails;
  return rails;
}

// On the control thread.
void AttemptRails::receive(std::uint32_t from, std::string_view message) {
  std::shared_ptr<LinkRails> rails;
  {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(from);
    if (found != all_.end()) rails = found->second.lock();
  }
  const std::shared_ptr<Domain> domain = setup_.domain.lock();
  if (rails == nullptr || domain == nullptr) return;
  {
    const std::lock_guard lock(domain->lock());
    rails->receive(message);
    domain->note_output();
  }
  setup_.wakeup->ring();
}

LinkRails::LinkRails(std::shared_ptr<AttemptRails> all, std::uint32_t peer, PipeMaker::Role role)
    : all_(std::move(all)),
      peer_(peer),
      role_(role),
      is_new_(role == PipeMaker::Role::selects && all_->setup().begin == Connect::all) {}

void LinkRails::receive(std::string_view message) {
  if (!given_up_) inbox_.add(message);
}

void LinkRails::give_up() {
  given_up_ = true;
  is_new_ = false;
  inbox_.clear();
  set_up_.reset();
}

void LinkRails::advance(Domain& domain, Link& link) {
  if (given_up_ || channel_ == nullptr) return;
  if (inbox_.is_overrun()) lose_all(link);
  while (const auto message = inbox_.take()) {
    take(*message, link);
    // The peer may have begun the next set-up behind the message that ends this one: its rail counts before that is looked at,
    // for the peer sends over it already, and its device has acknowledged what would be lost here.
    go_on(domain, link);
  }
  if (given_up_) return;  // a rail that the peer has lost may have been the last path
  look_at_medium();
  const bool wanted = all_->setup().begin == Connect::all || link.is_used();
  if (set_up_ == nullptr && role_ == PipeMaker::Role::selects && wanted) begin_missing(link);
  go_on(domain, link);
}

void LinkRails::go_on(Domain& domain, Link& link) {
  if (set_up_ == nullptr) return;
  send_messages();
  const bool done = set_up_->advance();
  send_messages();
  if (done) return ended(domain, link);
  if (monotonic_ns() > until_ns_)
    failed(failure(Code::timeout, "its process does not answer about RDMA, or the set-up takes longer than 30 s"));
}

void LinkRails::look_at_medium() {
  const std::uint64_t changes = all_->setup().maker->changes();
  if (changes == changes_) return;
  changes_ = changes;
  pause_.something_changed(monotonic_ns());
  if (role_ == PipeMaker::Role::follows && number_ > 0) tell_usable();
}

void LinkRails::tell_usable() { send({RailWord::usable, 0, 1, 0, all_->setup().maker->usable()}, {}); }

void LinkRails::begin_missing(const Link& link) {
  const std::size_t rails = link.rails();
  const std::size_t sockets = link.sockets() - rails;
  std::size_t missing = 0;
  for (std::size_t rail = 0; rail < rails; ++rail) missing += link.wants_rail(sockets + rail) ? 1 : 0;
  if (rails - missing >= std::min(all_->setup().maker->usable(), peer_usable_)) {
    is_new_ = false;
    return;
  }
  for (std::size_t rail = 0; rail < rails; ++rail) {
    if (!link.wants_rail(sockets + rail)) continue;
    if (!pause_.over(monotonic_ns())) return;
    is_new_ = false;
    ++number_;
    begin(static_cast<std::uint8_t>(rail), link);
    return send(RailWord::begin, {});
  }
}

void LinkRails::begin(std::uint8_t rail, const Link& link) {
  rail_ = rail;
  until_ns_ = monotonic_ns() + kSetUpNs;
  PipeMaker::Wanted wanted{role_, "rank " + std::to_string(peer_), {}, 0, this};
  if (role_ == PipeMaker::Role::selects) wanted.interface = interface_of(link.descriptor(0));
  for (std::size_t path = link.sockets() - link.rails(); path < link.sockets(); ++path)
    if (const BytePipe* const pipe = link.rail(path); pipe != nullptr) wanted.beside.push_back(pipe);
  set_up_.reset();  // gives back what it had before the next one asks for as much
  set_up_ = all_->setup().maker->begin(wanted);
}

// The bytes come from the peer: what is of another set-up, or makes no sense, is dropped.
void LinkRails::take(const RailInbox::Message& message, Link& link) {
  const RailHead& head = message.head;
  if (head.rail >= link.rails()) return;
  if (head.word == RailWord::begin) {
    if (role_ == PipeMaker::Role::selects || head.number <= number_) return;
    if (set_up_ != nullptr) broke(rail_, number_);  // the peer has given it up, or its last message was lost
    if (number_ == 0) tell_usable();
    number_ = head.number;
    return begin(head.rail, link);
  }
  if (head.word == RailWord::broken) return hear_broken(head, link);
  if (head.word == RailWord::usable) {
    peer_usable_ = head.number;
    return pause_.something_changed(monotonic_ns());
  }
  if (head.number != number_ || set_up_ == nullptr) return;
  if (const Status heard = set_up_->hear(message.bytes); !heard.ok()) {
    send_messages();
    failed(heard);
  }
}

// An attempt that this end has given up already, or a rail that has been replaced, matches nothing.
void LinkRails::hear_broken(const RailHead& head, Link& link) {
  if (set_up_ != nullptr && head.number == number_ && head.rail == rail_)
    return failed(failure(Code::remote_error, "its process has given it up"));
  link.peer_lost_rail(link.sockets() - link.rails() + head.rail, head.number);
}

// Messages were dropped, and one of them may have told that the peer has lost a rail, or has a port again.
void LinkRails::lose_all(Link& link) {
  if (set_up_ != nullptr) failed(failure(Code::remote_error, "its process sends more messages about RDMA than are kept"));
  for (std::size_t rail = 0; rail < link.rails() && !given_up_; ++rail)
    link.peer_lost_rail(link.sockets() - link.rails() + rail, kAnyAttempt);
  peer_usable_ = kUnknown;
}

// A rail that broke before the peer could take it is told, too: its last message is read before this one.
void LinkRails::broke(std::size_t rail, std::uint32_t attempt) {
  if (!given_up_ && channel_ != nullptr) send({RailWord::broken, static_cast<std::uint8_t>(rail), 1, 0, attempt}, {});
}

void LinkRails::send(RailHead head, std::string_view bytes) {
  constexpr std::size_t kPart = kMessageLimit - sizeof head;
  do {
    const std::string_view some = bytes.substr(0, kPart);
    bytes.remove_prefix(some.size());
    head.last = static_cast<std::uint8_t>(bytes.empty() ? 1 : 0);
    std::string part(reinterpret_cast<const char*>(&head), sizeof head);
    part.append(some);
    channel_->send_message(all_->setup().attempt, AttemptRails::handler_of(peer_), all_->setup().own, part);
  } while (!bytes.empty());
}

void LinkRails::send_messages() {
  while (const auto message = set_up_->next_message()) send(RailWord::message, *message);
}

void LinkRails::ended(Domain& domain, Link& link) {
  std::unique_ptr<BytePipe> pipe = set_up_->take();
  if (pipe == nullptr) return failed(set_up_->why());
  set_up_.reset();
  pause_.succeeded(monotonic_ns());
  const std::size_t path = link.sockets() - link.rails() + rail_;
  if (!domain.take_path(link, path, PathPipe(std::move(pipe)), number_)) broke(rail_, number_);
}

void LinkRails::failed(const Status& reason) {
  static std::atomic<bool> said{false};
  set_up_.reset();
  broke(rail_, number_);  // the peer may believe that it has succeeded, and use it
  pause_.failed(monotonic_ns());
  const std::string text(reason.text());
  if (said.exchange(true, std::memory_order_relaxed))
    SETO_LOG(debug, "a rail to rank %u could not be opened: %s", peer_, text.c_str());
  else
    SETO_LOG(info, "a rail to rank %u could not be opened, and is tried again (said for the first only): %s", peer_,
             text.c_str());
}

}  // namespace seto::tcp
