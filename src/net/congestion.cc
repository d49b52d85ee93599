#include "src/net/congestion.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/far_link.h"
#include "src/base/log.h"

namespace seto {
namespace {

constexpr const char* kUnpaced[] = {"cubic", "reno"};  // the second is there and allowed everywhere

constexpr const char* kForLongLinks = "bbr";

std::atomic<Congestion> congestion{Congestion::automatic};

bool take(int fd, const char* name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, static_cast<socklen_t>(std::strlen(name))) == 0;
}

bool is_bbr(const std::string& name) { return name.compare(0, 3, kForLongLinks) == 0; }

void say_refused(const std::string& present) {
  static std::atomic<bool> said{false};
  const int error = errno;
  if (!said.exchange(true, std::memory_order_relaxed))
    SETO_LOG(info,
             "TCP with a round trip of 1 ms or more keeps %s, because the kernel refuses %s (%s); docs/between_sites.md says "
             "what to do",
             present.c_str(), kForLongLinks, std::strerror(error));
}

std::string control_of(int fd) {
  std::array<char, 17> name{};  // TCP_CA_NAME_MAX, and a zero at the end
  socklen_t size = name.size() - 1;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return {};
  return name.data();
}

}  // namespace

unsigned round_trip_us(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  const bool has_least = size >= offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt;
  const bool measured = has_least && info.tcpi_min_rtt != ~std::uint32_t{0};
  return measured ? info.tcpi_min_rtt : info.tcpi_rtt;
}

void set_congestion(Congestion wish) { congestion.store(wish, std::memory_order_relaxed); }

std::string choose_congestion_control(int fd) {
  const std::string present = control_of(fd);
  const unsigned round_trip = round_trip_us(fd);
  if (present.empty() || round_trip == 0) return present;
  if (is_far(round_trip)) {
    if (is_bbr(present) || congestion.load(std::memory_order_relaxed) == Congestion::system) return present;
    if (!take(fd, kForLongLinks)) say_refused(present);
  } else if (is_bbr(present)) {
    for (const char* const name : kUnpaced)
      if (take(fd, name)) break;
  }
  return control_of(fd);
}

}  // namespace seto
