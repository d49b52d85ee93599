#include "transports/shm/local_notice.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::size_t kOfferSize = 1;
constexpr std::size_t kMappedSize = 2;
constexpr std::size_t kEndedSize = sizeof(ContextId);
static_assert(kEndedSize > kMappedSize);

bool send_notice(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors = {}) {
  return send_packet(socket, bytes, descriptors) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

LocalNotice receive_notice(int socket) {
  std::array<std::byte, kEndedSize + 1> bytes{};  // one more, so that a longer packet is detected
  ReceivedPacket packet;
  do {
    packet = receive_packet(socket, bytes);
  } while (packet.size < 0 && errno == EINTR);
  LocalNotice notice;
  if (packet.size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    notice.kind = LocalNotice::Kind::nothing_more;
    return notice;
  }
  if (packet.size <= 0) {
    notice.kind = LocalNotice::Kind::process_ended;
    return notice;
  }
  if (!packet.descriptors.empty()) notice.memory = std::move(packet.descriptors.front());
  if (packet.size == kEndedSize) {
    notice.kind = LocalNotice::Kind::context_ended;
    std::memcpy(&notice.context, bytes.data(), sizeof notice.context);
  } else if (packet.size == kOfferSize) {
    notice.kind = LocalNotice::Kind::memory_offered;
  } else if (packet.size == kMappedSize) {
    notice.kind = LocalNotice::Kind::memory_mapped;
  }
  return notice;
}

bool send_context_ended(int socket, ContextId context) { return send_notice(socket, std::as_bytes(std::span(&context, 1))); }

bool send_memory_mapped(int socket) { return send_notice(socket, std::array<std::byte, kMappedSize>{}); }

bool send_memory(int socket, int memory) {
  return send_notice(socket, std::array<std::byte, kOfferSize>{}, std::span(&memory, 1));
}

}  // namespace seto
