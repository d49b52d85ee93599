#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "src/net/tls/secure_stream.h"
#include "tests/fuzz/altered.h"
#include "tests/support/certificates.h"

namespace {

using namespace seto;

std::pair<PrivateFd, PrivateFd> two_sockets() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) std::abort();
  return {PrivateFd(Fd(fds[0])), PrivateFd(Fd(fds[1]))};
}

std::string take_raw(const PrivateFd& fd) {
  char bytes[20'000];
  const ssize_t got = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  return {bytes, got < 0 ? 0 : static_cast<std::size_t>(got)};
}

void put_raw(const PrivateFd& fd, std::string_view bytes) { (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

// The bytes of the caller, from its first message on, are altered on their way: the answerer must never read a byte that the
// caller has not sent in that place.
void exchange(testing::Altered channel, const TlsTrust& trust) {
  auto [caller_fd, at_caller] = two_sockets();
  auto [answerer_fd, at_answerer] = two_sockets();
  SecureStream caller(std::move(caller_fd));
  SecureStream answerer(std::move(answerer_fd));
  if (!caller.encrypt(TlsSession::Role::caller, trust).ok() || !answerer.encrypt(TlsSession::Role::answerer, trust).ok())
    std::abort();
  for (bool one = false, other = false; !one || !other;) {
    const auto called = caller.advance();
    put_raw(at_answerer, channel.on_the_way(take_raw(at_caller)));
    const auto answered = answerer.advance();
    put_raw(at_caller, take_raw(at_answerer));
    if (channel.changed() && (!called.ok() || !answered.ok())) return;
    if (!called.ok() || !answered.ok()) std::abort();
    if (channel.changed() && !(called.value() && answered.value())) return;  // it may wait for the rest of a longer record
    one = called.value();
    other = answered.value();
  }
  const std::string text = "a text of some length that the answerer expects";
  std::string got;
  for (int message = 0; message < 4; ++message) {
    if (!caller.send_whole(text)) std::abort();
    put_raw(at_answerer, channel.on_the_way(take_raw(at_caller)));
    char bytes[100];
    const ssize_t read = answerer.receive(bytes, sizeof bytes);
    if (read < 0 && errno != EAGAIN && errno != EBADMSG) std::abort();
    if (read < 0 && !channel.changed()) std::abort();
    got.append(bytes, read < 0 ? 0 : static_cast<std::size_t>(read));
    if (got.compare(0, got.size(), (text + text + text + text).substr(0, got.size())) != 0) std::abort();
  }
}

TlsIdentity* identity_of_test() {
  static const testing::CertificateAuthority authority;
  static const testing::HostFiles host(authority);
  static TlsIdentity* const identity = TlsIdentity::of({host.certificate(), host.key(), host.authorities()}).value();
  return identity;
}

}  // namespace

// Once with a key and once with certificates.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  exchange(testing::Altered(data, size), Secret::of_text("key"));
  exchange(testing::Altered(data, size), {Secret(), identity_of_test()});
  return 0;
}
