#include "src/net/congestion.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/far_link.h"

namespace seto {
namespace {

constexpr const char* kUnpaced[] = {"cubic", "reno"};  // the second is there and allowed everywhere

bool is_near(int fd) {
  const unsigned round_trip = round_trip_us(fd);
  return round_trip != 0 && !is_far(round_trip);
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

std::string choose_congestion_control(int fd) {
  const std::string present = control_of(fd);
  if (present.compare(0, 3, "bbr") != 0 || !is_near(fd)) return present;
  for (const char* const name : kUnpaced)
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, static_cast<socklen_t>(std::strlen(name))) == 0) break;
  return control_of(fd);
}

}  // namespace seto
