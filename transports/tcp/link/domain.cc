#include "transports/tcp/link/domain.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "src/base/far_link.h"

namespace seto::tcp {
namespace {

constexpr int kEventsAtOnce = 64;

void note(Moved& moved, const Link& link, bool some) { (link.far() ? moved.far : moved.near) |= some; }

}  // namespace

Result<std::unique_ptr<Domain>> Domain::create() {
  std::unique_ptr<Domain> domain(new Domain());
  domain->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!domain->epoll_.valid()) return system_failure(Code::unavailable, "no descriptor to wait for TCP on (ulimit -n)");
  return domain;
}

Domain::~Domain() { close(); }

// A link that ends may end a control channel, which waits for the control thread; that one may wait for the lock. So links are
// destroyed without it.
void Domain::close() {
  deliver();
  std::vector<std::shared_ptr<Link>> closed;
  const std::lock_guard lock(mutex_);
  for (Member& member : links_) {
    unwatch(member);
    closed.push_back(member.link);
  }
  links_.clear();
  count_.store(0, std::memory_order_relaxed);
  on_output_ = {};
  pipes_ = nullptr;
}

// Connections that only this domain holds stay until their data is delivered: a rank may end before its peers have read
// everything.
void Domain::deliver() {
  if (hurried_.load(std::memory_order_relaxed)) return;
  const Deadline until = Deadline::after_ms(kLastWordsMs);
  const Deadline opened = Deadline::after_ms(kLastOpeningMs);
  for (;;) {
    bool all = true;
    bool opening = false;
    {
      const std::lock_guard lock(mutex_);
      if (pipes_ != nullptr) (void)pipes_->poll();
      for (Member& member : links_) {
        member.link->tell_heard_now();
        take_offers(member);
        (void)member.link->receive();  // closing with unread bytes would reset the connection and lose the last data sent
        (void)member.link->flush();
        member.link->look_after();
        follow_paths(member);
        const bool delivered = member.link->delivered();
        all = all && delivered;
        opening = opening || (!delivered && !member.link->open());
      }
    }
    if (all || (until.passed() && (!opening || opened.passed()))) return;
    (void)poll(nullptr, 0, 1);  // no event reports the acknowledgement of the peer's kernel
  }
}

Status Domain::use_pipes(PipeMaker* pipes) {
  if (pipes == nullptr) return {};
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pipes->descriptor(), &event) != 0)
    return system_failure(Code::unavailable, "epoll refuses the events of pipes");
  pipes_ = pipes;
  return {};
}

Result<std::shared_ptr<Link>> Domain::add(Link::Setup setup) {
  std::vector<std::shared_ptr<Link>> unused;  // destroyed without the lock, as in close()
  const std::lock_guard lock(mutex_);
  unused = take_unused();
  auto share = std::make_unique<ReceiveShare>(buffers_);
  setup.share = share.get();
  setup.copies = copies_;
  setup.together = setup.together || together_;
  if (pipes_ != nullptr && !pipes_->takes_all() && setup.choice == nullptr) setup.choice = std::make_unique<WayChoice>();
  auto link = std::make_shared<Link>(std::move(setup));
  links_.push_back({link, std::move(share), {}, {}});
  count_.store(links_.size(), std::memory_order_relaxed);
  if (!link->open()) return link;
  if (Status refused = watch(links_.back()); !refused.ok()) {
    links_.pop_back();
    count_.store(links_.size(), std::memory_order_relaxed);
    return refused;
  }
  return link;
}

Status Domain::open(Link& link, std::vector<SecureStream> sockets) {
  const auto member = std::find_if(links_.begin(), links_.end(), [&](const Member& one) { return one.link.get() == &link; });
  if (member == links_.end() || link.broken() || link.open()) return {};
  link.take_sockets(std::move(sockets));
  if (Status refused = watch(*member); !refused.ok()) {
    link.break_with(refused);
    return refused;
  }
  note_output();
  return {};
}

bool Domain::take_path(Link& link, std::size_t path, PathPipe pipe, std::uint32_t attempt) {
  const auto member = std::find_if(links_.begin(), links_.end(), [&](const Member& one) { return one.link.get() == &link; });
  if (member == links_.end() || member->watched.empty() || !link.takes_path(path, attempt)) return false;
  link.offer_path(path, std::move(pipe), attempt);
  note_output();
  return true;
}

void Domain::leave_path(Link& link, std::size_t path) {
  link.leave_path(path);
  note_output();
}

void Domain::take_offers(Member& member) {
  Link& link = *member.link;
  for (std::size_t path = 0; path < link.sockets() && link.has_offers(); ++path) {
    if (!link.is_offered(path)) continue;
    link.drop_path(path, failure(Code::remote_error, "the peer has opened it again"));
    if (link.broken()) return;  // the others have ended
    unwatch_socket(member, path);
    link.close_path(path);
    link.take_path(path);
  }
}

Status Domain::watch(Member& member) {
  Link& link = *member.link;
  member.watched.resize(link.sockets());
  member.listens_for_room.resize(link.sockets());
  if (link.continues() || link.may_be_held_back())
    if (Status refused = make_alarm(); !refused.ok()) {
      member.listens_for_room.clear();
      return refused;
    }
  for (std::size_t i = 0; i < link.sockets(); ++i) {
    if (link.path_is_broken(i) || watch_socket(member, i)) continue;
    Status refused = system_failure(Code::unavailable, "epoll refuses a TCP connection");
    while (i-- > 0) unwatch_socket(member, i);
    member.listens_for_room.clear();
    return refused;
  }
  if (link.far()) windows_.add_far_link();
  sockets_.fetch_add(link.first_sockets(), std::memory_order_relaxed);
  return {};
}

// No event announces bytes that were read with the end of the handshake. The holder of the token has to read them, because it
// looks at the messages without the lock. So the room in the new socket wakes it.
bool Domain::watch_socket(Member& member, std::size_t socket) {
  if (member.link->descriptor(socket) < 0) return true;  // a rail: the maker of pipes has its events
  const bool pending = member.link->pending();
  epoll_event event{};
  event.events = EPOLLIN | (pending ? EPOLLOUT : 0U);
  event.data.ptr = member.link.get();
  member.listens_for_room[socket] = pending;
  member.watched[socket] = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, member.link->descriptor(socket), &event) == 0;
  return member.watched[socket];
}

void Domain::unwatch_socket(Member& member, std::size_t socket) {
  if (member.watched[socket]) (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, member.link->descriptor(socket), nullptr);
  member.watched[socket] = false;
}

void Domain::follow_paths(Member& member) {
  Link& link = *member.link;
  if (member.watched.empty() || !link.paths_changed()) return;
  for (std::size_t i = 0; i < link.sockets(); ++i) {
    if (link.path_is_broken(i)) {
      unwatch_socket(member, i);
      link.close_path(i);
    } else if (!member.watched[i] && !link.ended(i) && !watch_socket(member, i)) {
      link.drop_path(i, failure(Code::unavailable, "epoll refuses a TCP connection"));
    }
  }
}

// Another process may have inherited a socket, which then stays open, so the kernel is told to report no more events of it: an
// event carries the address of the connection.
void Domain::unwatch(Member& member) {
  Link& link = *member.link;
  link.retire();
  if (member.listens_for_room.empty()) return;
  for (std::size_t i = 0; i < link.sockets(); ++i) unwatch_socket(member, i);
  sockets_.fetch_sub(link.first_sockets(), std::memory_order_relaxed);
  if (link.far()) windows_.remove_far_link();
}

// Connections that only this domain holds and that have delivered their data.
std::vector<std::shared_ptr<Link>> Domain::take_unused() {
  std::vector<std::shared_ptr<Link>> unused;
  std::erase_if(links_, [&](Member& member) {
    if (member.link.use_count() > 1 || !member.link->delivered()) return false;
    unwatch(member);
    unused.push_back(member.link);
    return true;
  });
  return unused;
}

Moved Domain::pump() {
  Moved moved;
  if (empty()) return moved;
  const std::lock_guard lock(mutex_);
  look_at_input(moved);
  share_site_pace();
  bool unsent = false;
  bool sends_now = false;
  on_rails_ = pipes_ != nullptr;
  bool any_rail = false;
  std::uint64_t look_ns = Link::kNever;
  for (Member& member : links_) {
    if (pipes_ != nullptr) member.link->advance_rails(*this);
    if (member.link->has_offers()) take_offers(member);
    note(moved, *member.link, member.link->look_after());
    if (member.link->unsent()) note(moved, *member.link, member.link->flush());
    follow_paths(member);
    if (member.link->took_from_sockets()) looks_ = kLooksAfterInput;
    const bool on_rail = member.link->open() && member.link->has_live_rail();
    any_rail = any_rail || on_rail;
    on_rails_ = on_rails_ && (on_rail || !member.link->open() || member.link->broken() || !member.link->is_used());
    if (!member.link->unsent()) continue;
    unsent = true;
    sends_now = sends_now || !member.link->only_waits();
    look_ns = std::min(look_ns, member.link->next_look_ns());
  }
  on_rails_ = on_rails_ && any_rail;
  set_alarm(look_ns);
  set_unsent(unsent, sends_now);
  return moved;
}

void Domain::look_at_input(Moved& moved) {
  if (pipes_ != nullptr) (void)pipes_->poll();
  if (looks_at_sockets()) {
    if (sockets_.load(std::memory_order_relaxed) > kReadInTurn) {
      moved = pump_ready();
    } else {
      for (const Member& member : links_) note(moved, *member.link, !member.link->broken() && member.link->receive());
    }
  }
  if (pipes_ == nullptr) return;
  for (const Member& member : links_) note(moved, *member.link, member.link->receive_rails());
}

bool Domain::looks_at_sockets() {
  if (looks_ > 0)
    --looks_;
  else if (on_rails_ && ++pumps_ < kPumpsALook)
    return false;
  pumps_ = 0;
  return true;
}

// The links to other sites that have output share what this context may send there, so that one alone has all of it.
void Domain::share_site_pace() {
  std::uint64_t most = 0;
  std::uint64_t sending = 0;
  for (const Member& member : links_) {
    const std::uint64_t limit = member.link->site_pace_limit();
    if (limit == 0) continue;
    most = most == 0 ? limit : std::min(most, limit);
    if (member.link->sends()) ++sending;
  }
  if (most == 0) return;
  const std::uint64_t share = std::max<std::uint64_t>(1, most / std::max<std::uint64_t>(1, sending));
  for (const Member& member : links_)
    if (member.link->site_pace_limit() != 0) member.link->set_site_pace(share);
}

Status Domain::make_alarm() {
  if (alarm_.valid()) return {};
  Fd alarm(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!alarm.valid()) return system_failure(Code::unavailable, "no descriptor for a timer (ulimit -n)");
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm.get(), &event) != 0)
    return system_failure(Code::unavailable, "epoll refuses a timer");
  alarm_ = std::move(alarm);
  return {};
}

// Setting the timer also makes it silent, so it is never read.
void Domain::set_alarm(std::uint64_t at_ns) {
  const bool wanted = at_ns != Link::kNever;
  if (!alarm_.valid() || (!wanted && alarm_ns_ == 0)) return;
  const std::uint64_t now = monotonic_ns();
  if (wanted && alarm_ns_ > now && alarm_ns_ <= at_ns) return;
  alarm_ns_ = wanted ? std::max(at_ns, now + 1) : 0;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(wanted ? (alarm_ns_ - now) / kSecond : 0);
  when.it_value.tv_nsec = static_cast<long>(wanted ? (alarm_ns_ - now) % kSecond : 0);
  (void)timerfd_settime(alarm_.get(), 0, &when, nullptr);
}

// Reads each connection once, even if several of its sockets are ready.
Moved Domain::pump_ready() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, 0);
  std::array<Link*, kEventsAtOnce> ready;
  std::size_t links = 0;
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(0, count)))) {
    auto* const link = static_cast<Link*>(event.data.ptr);
    if (link != nullptr && ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 || link->pending()))
      ready[links++] = link;
  }
  std::sort(ready.begin(), ready.begin() + links);
  Moved moved;
  for (Link* const link : std::span(ready.begin(), std::unique(ready.begin(), ready.begin() + links)))
    note(moved, *link, !link->broken() && link->receive());
  return moved;
}

void Domain::note_output() {
  bool unsent = false;
  bool sends_now = false;
  for (const Member& member : links_) {
    if (!member.link->unsent()) continue;
    unsent = true;
    sends_now = !member.link->only_waits();
    if (sends_now) break;
  }
  set_unsent(unsent, sends_now);
}

void Domain::set_unsent(bool unsent, bool sends_now) {
  sends_now_.store(sends_now, std::memory_order_release);
  const bool before = unsent_.exchange(unsent, std::memory_order_acq_rel);
  if (unsent && !before && on_output_) on_output_();
}

// Waits for writability only on sockets that are full. A broken connection would always be readable, so it is removed.
void Domain::prepare_to_sleep() {
  if (empty()) return;
  const std::lock_guard lock(mutex_);
  looks_ = std::max(looks_, kLooksAroundSleep);
  if (pipes_ != nullptr) pipes_->arm();
  for (Member& member : links_) {
    for (std::size_t i = 0; i < member.link->sockets(); ++i) {
      if (member.link->ended(i)) unwatch_socket(member, i);
      if (!member.watched[i]) continue;
      const int descriptor = member.link->descriptor(i);
      const bool wants = member.link->wants_to_write(i);
      if (wants == member.listens_for_room[i]) continue;
      epoll_event event{};
      event.events = EPOLLIN | (wants ? EPOLLOUT : 0U);
      event.data.ptr = member.link.get();
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0) member.listens_for_room[i] = wants;
    }
  }
}

}  // namespace seto::tcp
