#include "src/net/tcp_delivery.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <cstddef>

namespace seto {
namespace {

constexpr int kRetransmitMaxMs = 44;  // TCP_RTO_MAX_MS, which older headers lack
constexpr int kLongestPauseMs = 1'000;

}  // namespace

std::optional<TcpDelivery> tcp_delivery(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_delivered) + sizeof info.tcpi_delivered) return std::nullopt;
  TcpDelivery delivery;
  delivery.segments = info.tcpi_delivered;
  delivery.segment_bytes = info.tcpi_snd_mss;
  delivery.app_limited = info.tcpi_delivery_rate_app_limited != 0;
  delivery.round_trip_us = info.tcpi_min_rtt == ~std::uint32_t{0} ? 0 : info.tcpi_min_rtt;
  delivery.now_us = info.tcpi_rtt;
  delivery.beyond_loss = std::uint64_t{info.tcpi_sacked} * info.tcpi_snd_mss;
  delivery.silent_ms = info.tcpi_last_data_recv;
  delivery.unheard_ms = info.tcpi_unacked > 0 ? info.tcpi_last_ack_recv : 0;
  if (size >= offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans) {
    delivery.bytes_sent = info.tcpi_bytes_sent;
    delivery.bytes_resent = info.tcpi_bytes_retrans;
  }
  return delivery;
}

std::optional<TcpAcknowledged> tcp_acknowledged(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_notsent_bytes) + sizeof info.tcpi_notsent_bytes) return std::nullopt;
  return TcpAcknowledged{info.tcpi_bytes_acked, info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0, info.tcpi_unacked > 0,
                         info.tcpi_unacked > 0 && info.tcpi_retransmits > 0};
}

void outlast_outages(int fd, std::uint64_t patience_ms) {
  const auto limit = static_cast<unsigned>(std::min<std::uint64_t>(patience_ms, INT_MAX));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit));
  static_cast<void>(setsockopt(fd, IPPROTO_TCP, kRetransmitMaxMs, &kLongestPauseMs, sizeof kLongestPauseMs));
}

}  // namespace seto
