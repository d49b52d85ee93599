#include "src/control/control_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "src/base/check.h"
#include "src/base/thread.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::uint64_t kStopId = 0;
constexpr int kEventsPerWait = 64;

bool add_to_epoll(int epoll, int fd, std::uint32_t events, std::uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

ControlThread::Registration& ControlThread::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    remove();
    owner_ = std::exchange(other.owner_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void ControlThread::Registration::remove() {
  if (ControlThread* owner = std::exchange(owner_, nullptr)) owner->remove(id_);
}

Result<std::unique_ptr<ControlThread>> ControlThread::create() {
  std::unique_ptr<ControlThread> control(new ControlThread);
  control->epoll_ = PrivateFd(Fd(epoll_create1(EPOLL_CLOEXEC)));
  if (!control->epoll_.valid()) return socket_failure("cannot start the control thread");
  control->stop_event_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!control->stop_event_.valid()) return socket_failure("cannot start the control thread");
  if (!add_to_epoll(control->epoll_.get(), control->stop_event_.get(), EPOLLIN, kStopId)) {
    return socket_failure("cannot start the control thread");
  }
  SETO_ASSIGN(control->thread_, start_thread("seto-control", [raw = control.get()] { raw->loop(); }));
  control->thread_id_ = control->thread_.get_id();
  return control;
}

Result<ControlThread::Registration> ControlThread::add(int fd, std::uint32_t events, Handler handler) {
  if (dead()) return used_in_forked_child();
  const std::lock_guard lock(mutex_);
  if (stopping_) return failure(Code::invalid_usage, "the control thread has ended, as the process is doing");
  const std::uint64_t id = next_id_++;
  entries_.emplace(id, Entry{fd, std::make_shared<const Handler>(std::move(handler))});
  if (!add_to_epoll(epoll_.get(), fd, events, id)) {
    entries_.erase(id);
    return socket_failure("cannot watch a socket");
  }
  return Registration(this, id);
}

// One shot: a hang-up is permanent and would be reported again and again.
Result<ControlThread::Registration> ControlThread::watch(int socket, std::function<void()> on_hang_up) {
  return add(socket, EPOLLRDHUP | EPOLLONESHOT, [call = std::move(on_hang_up)](std::uint32_t) { call(); });
}

void ControlThread::loop() {
  std::array<epoll_event, kEventsPerWait> events;
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerWait, -1);
    if (count < 0) SETO_CHECK(errno == EINTR);
    for (int index = 0; index < count; ++index) {
      const epoll_event& event = events[static_cast<std::size_t>(index)];
      if (event.data.u64 == kStopId) return;
      dispatch(event.data.u64, event.events);
    }
  }
}

void ControlThread::dispatch(std::uint64_t id, std::uint32_t events) {
  std::shared_ptr<const Handler> handler;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;  // removed after epoll had reported it
    handler = found->second.handler;
    running_id_ = id;
  }
  (*handler)(events);
  handler.reset();  // destroys what the handler owns while remove() still waits
  {
    const std::lock_guard lock(mutex_);
    running_id_ = 0;
  }
  idle_.notify_all();
}

void ControlThread::remove(std::uint64_t id) {
  if (dead()) return;
  std::shared_ptr<const Handler> handler;  // outlives the lock: it may own registrations
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) {
    handler = std::move(found->second.handler);
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    entries_.erase(found);
  }
  if (std::this_thread::get_id() == thread_id_) return;
  idle_.wait(lock, [&] { return running_id_ != id; });
}

ControlThread::~ControlThread() {
  stop();
  // In a forked child the thread does not exist: it can be neither joined nor detached, only forgotten.
  if (dead() && thread_.joinable()) new std::thread(std::move(thread_));
}

void ControlThread::stop() {
  if (dead() || !thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  const std::uint64_t one = 1;
  SETO_CHECK(write(stop_event_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
}

}  // namespace seto
