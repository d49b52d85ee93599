#include "src/control/local/status_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "src/net/local_socket.h"
#include "src/net/token.h"

namespace seto {
namespace {

// Then the control thread serves other handlers, so that a flood of askers delays no heartbeat.
constexpr int kAskersAtOnce = 4;

// A random number: another user could take a name that can be guessed.
std::string new_name() {
  std::uint32_t number = 0;
  fill_random(&number, sizeof number);
  std::array<char, 48> name{};
  std::snprintf(name.data(), name.size(), "%s%d.%08x", kStatusSocketPrefix, getpid(), number);
  return name.data();
}

}  // namespace

Result<std::unique_ptr<StatusSocket>> StatusSocket::create(ControlThread& control, std::function<std::string()> tell) {
  std::unique_ptr<StatusSocket> made(new StatusSocket(std::move(tell)));
  made->name_ = new_name();
  SETO_ASSIGN(made->listener_, listen_local(made->name_, SocketKind::stream));
  made->reserve_ = spare_descriptor();
  if (!made->reserve_.valid()) return socket_failure("cannot tell others about this process");
  StatusSocket* const raw = made.get();
  SETO_ASSIGN(raw->watch_, control.add(raw->listener_.get(), EPOLLIN, [raw](std::uint32_t) { raw->accept_some(); }));
  return made;
}

void StatusSocket::accept_some() {
  for (int count = 0; count < kAskersAtOnce; ++count) {
    const PrivateFd asker = accept_one();
    if (!asker.valid()) return;
    if (check_same_user(asker.get()).ok()) answer(asker);
  }
}

PrivateFd StatusSocket::accept_one() {
  PrivateFd asker = accept_local(listener_);
  if (asker.valid() || errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return asker;
  reserve_.close();
  asker = accept_local(listener_);
  // Without any descriptor the socket would stay readable and keep this thread busy, so it is not watched any more.
  if (!asker.valid() && errno != EAGAIN) watch_.remove();
  if (asker.valid() && check_same_user(asker.get()).ok()) answer(asker);
  asker.close();
  reserve_ = spare_descriptor();
  return {};
}

// A failure shows at the asker, as a text that is cut off.
void StatusSocket::answer(const PrivateFd& asker) const {
  const std::string text = tell_();
  const int room = static_cast<int>(2 * kLongestStatus);
  (void)setsockopt(asker.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  [[maybe_unused]] const ssize_t sent = send(asker.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace seto
