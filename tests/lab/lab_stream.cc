// The traffic that the checks of the lab send over its links: a TCP stream whose every byte is compared, and a ping-pong of one
// byte.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/result.h"
#include "src/base/text.h"

namespace seto::lab {
namespace {

constexpr char kUsage[] =
    "usage: lab_stream serve ADDRESS [PORT]            prints `port N`; serves until it is ended\n"
    "       lab_stream ping ADDRESS PORT COUNT         round trips of one byte\n"
    "       lab_stream send ADDRESS PORT BYTES         one way, compared byte by byte at the other end\n"
    "A silence of 20 s (LAB_STREAM_LIMIT_S) is an error.\n";

constexpr char kEcho = 'e', kSink = 's';
constexpr std::size_t kPatternSize = 1'000'003;  // no multiple of anything that a link might cut at

Status failed(const std::string& what) { return {Code::unavailable, what + ": " + std::strerror(errno)}; }

std::vector<char> make_pattern() {
  std::vector<char> pattern(kPatternSize);
  std::uint32_t state = 1;
  for (char& byte : pattern) byte = static_cast<char>((state = state * 1'664'525 + 1'013'904'223) >> 24);
  return pattern;
}

void bound_silence(int fd) {
  const char* limit = std::getenv("LAB_STREAM_LIMIT_S");
  const timeval time{.tv_sec = limit != nullptr ? std::atoi(limit) : 20, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Status send_all(int fd, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t size = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return failed("send");
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  return {};
}

// 0 at the end of the stream.
Result<std::size_t> receive(int fd, std::span<char> bytes) {
  while (true) {
    const ssize_t size = recv(fd, bytes.data(), bytes.size(), 0);
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno != EINTR) return failed("recv");
  }
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolved(const char* address, const char* port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address, port, &hints, &found); error != 0) {
    return Status(Code::invalid_argument, std::string(address) + " port " + port + ": " + gai_strerror(error));
  }
  return AddressList(found, &freeaddrinfo);
}

Result<Fd> connect_to(const char* address, const char* port) {
  SETO_ASSIGN(const AddressList target, resolved(address, port));
  Fd fd(socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return failed("socket");
  bound_silence(fd.get());
  if (connect(fd.get(), target->ai_addr, target->ai_addrlen) != 0) return failed(std::string("connecting to ") + address);
  return fd;
}

void echo(int fd) {
  std::array<char, 1> byte{};
  while (true) {
    const auto size = receive(fd, byte);
    if (!size.ok() || size.value() == 0 || !send_all(fd, byte).ok()) return;
  }
}

// Answers with the number of bytes and of wrong bytes, as text.
void sink(int fd) {
  const std::vector<char> pattern = make_pattern();
  std::vector<char> buffer(256 << 10);
  std::uint64_t total = 0, wrong = 0;
  while (true) {
    const auto size = receive(fd, buffer);
    if (!size.ok()) return;
    if (size.value() == 0) break;
    for (std::size_t index = 0; index < size.value(); ++index, ++total) wrong += buffer[index] != pattern[total % kPatternSize];
  }
  static_cast<void>(send_all(fd, std::to_string(total) + " " + std::to_string(wrong)));
}

void serve_one(Fd fd) {
  bound_silence(fd.get());
  std::array<char, 1> wish{};
  const auto size = receive(fd.get(), wish);
  if (!size.ok() || size.value() != 1) return;
  if (wish[0] == kEcho) echo(fd.get());
  if (wish[0] == kSink) sink(fd.get());
}

Status serve(std::span<char*> arguments) {
  const char* port = arguments.size() > 1 ? arguments[1] : "0";
  SETO_ASSIGN(const AddressList address, resolved(arguments[0], port));
  const Fd listener(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), address->ai_addr, address->ai_addrlen) != 0 || listen(listener.get(), 16) != 0) {
    return failed(std::string("listening on ") + arguments[0]);
  }
  sockaddr_in6 bound{};  // the port stands at the same place in both families
  socklen_t size = sizeof bound;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  std::printf("port %u\n", ntohs(bound.sin6_port));
  std::fflush(stdout);
  while (true) {
    Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid()) std::thread(serve_one, std::move(fd)).detach();
  }
}

Status ping(std::span<char*> arguments) {
  const std::uint64_t count = parse_uint(arguments[2]).value_or(0);
  if (count == 0) return {Code::invalid_argument, "COUNT is a number above 0"};
  SETO_ASSIGN(const Fd fd, connect_to(arguments[0], arguments[1]));
  std::array<char, 1> byte{kEcho};
  SETO_TRY(send_all(fd.get(), byte));
  std::vector<double> times;
  for (std::uint64_t turn = 0; turn < count; ++turn) {
    const std::uint64_t start = monotonic_ns();
    SETO_TRY(send_all(fd.get(), byte));
    SETO_ASSIGN(const std::size_t size, receive(fd.get(), byte));
    if (size == 0) return {Code::remote_error, "the other end left"};
    times.push_back(static_cast<double>(monotonic_ns() - start) / 1e3);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"rtt_us\": %.1f, \"least_us\": %.1f, \"most_us\": %.1f}\n", times[times.size() / 2], times.front(),
              times.back());
  return {};
}

Status send_stream(std::span<char*> arguments) {
  std::uint64_t left = parse_size(arguments[2]).value_or(0);
  const std::uint64_t total = left;
  if (left == 0) return {Code::invalid_argument, "BYTES is a size above 0"};
  SETO_ASSIGN(const Fd fd, connect_to(arguments[0], arguments[1]));
  const std::vector<char> pattern = make_pattern();
  const char wish = kSink;
  SETO_TRY(send_all(fd.get(), {&wish, 1}));
  const std::uint64_t start = monotonic_ns();
  while (left > 0) {
    const std::size_t size = std::min<std::uint64_t>(left, pattern.size());
    SETO_TRY(send_all(fd.get(), std::span(pattern).first(size)));
    left -= size;
  }
  shutdown(fd.get(), SHUT_WR);
  std::array<char, 64> answer{};
  SETO_ASSIGN(const std::size_t size, receive(fd.get(), answer));
  const double seconds = static_cast<double>(monotonic_ns() - start) / 1e9;
  const std::string wanted = std::to_string(total) + " 0";
  const std::string_view got(answer.data(), size);
  if (got != wanted) return {Code::remote_error, "sent " + std::to_string(total) + " bytes; came, wrong: " + std::string(got)};
  std::printf("{\"bytes\": %llu, \"seconds\": %.6f, \"mbit_s\": %.2f}\n", static_cast<unsigned long long>(total), seconds,
              static_cast<double>(total) * 8 / seconds / 1e6);
  return {};
}

Status run(std::span<char*> arguments) {
  const std::string_view mode = arguments.empty() ? "" : arguments[0];
  const auto rest = arguments.subspan(std::min<std::size_t>(1, arguments.size()));
  if (mode == "serve" && !rest.empty()) return serve(rest);
  if (mode == "ping" && rest.size() == 3) return ping(rest);
  if (mode == "send" && rest.size() == 3) return send_stream(rest);
  return {Code::invalid_argument, kUsage};
}

}  // namespace
}  // namespace seto::lab

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const seto::Status status = seto::lab::run(std::span(arguments, static_cast<std::size_t>(count)).subspan(1));
  if (status.ok()) return 0;
  std::fprintf(stderr, "lab_stream: %s\n", std::string(status.text()).c_str());
  return 1;
}
