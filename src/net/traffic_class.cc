#include "src/net/traffic_class.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "src/base/log.h"

namespace seto {
namespace {

std::atomic<std::uint64_t> control_mark{kAutomatic};
std::atomic<std::uint64_t> data_mark{kAutomatic};

bool set(int fd, int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof value) == 0; }

}  // namespace

void set_traffic_marks(const TrafficMarks& marks) {
  control_mark.store(marks.control, std::memory_order_relaxed);
  data_mark.store(marks.data, std::memory_order_relaxed);
}

// A socket of IPv6 whose peer has an IPv4 address sends IPv4, so it has both options. The kernel keeps the two bits of ECN.
void mark_traffic(int fd, TrafficClass traffic) {
  const std::uint64_t control = control_mark.load(std::memory_order_relaxed);
  const std::uint64_t data = data_mark.load(std::memory_order_relaxed);
  if (control == kAutomatic && data == kAutomatic) return;
  const std::uint64_t mark = traffic == TrafficClass::control ? control : data;
  const int value = mark == kAutomatic ? 0 : static_cast<int>(mark << 2);
  int domain = AF_INET;
  socklen_t size = sizeof domain;
  (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  const bool is_ipv6 = domain == AF_INET6;
  const bool four = set(fd, IPPROTO_IP, IP_TOS, value);
  const bool marked = is_ipv6 ? set(fd, IPPROTO_IPV6, IPV6_TCLASS, value) : four;
  if (!marked) SETO_LOG(debug, "a TCP socket cannot be marked with the DSCP %d: %s", value >> 2, std::strerror(errno));
}

}  // namespace seto
