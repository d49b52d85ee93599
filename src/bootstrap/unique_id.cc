#include "src/bootstrap/unique_id.h"

#include <cstdint>
#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

constexpr std::uint64_t kMagic = 0x31644965'6f746553;  // "SetoeId1" in the bytes of a little-endian machine
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kLocal = 1;  // kinds of rendezvous: of this machine; one over TCP will have host and port in `room`

struct Layout {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t kind;
  Token token;
  char socket_name[32];  // ends in a zero
  char room[64];
};
static_assert(sizeof(Layout) == kUniqueIdSize);

}  // namespace

UniqueIdBytes encode(const UniqueId& id) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kVersion;
  layout.kind = kLocal;
  layout.token = id.token;
  SETO_CHECK(id.socket_name.size() < sizeof layout.socket_name);
  std::memcpy(layout.socket_name, id.socket_name.data(), id.socket_name.size());
  UniqueIdBytes bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

Result<UniqueId> decode(const UniqueIdBytes& bytes) {
  Layout layout;
  std::memcpy(&layout, bytes.data(), sizeof layout);
  if (layout.magic != kMagic) {
    return failure(Code::invalid_argument,
                   "this is no unique id: its first bytes are wrong; pass all %zu bytes from the rank that made it",
                   kUniqueIdSize);
  }
  if (layout.version != kVersion || layout.kind != kLocal) {
    return failure(Code::invalid_argument,
                   "a unique id of version %u and kind %u: this library knows version %u and kind %u only", layout.version,
                   layout.kind, kVersion, kLocal);
  }
  const std::size_t length = strnlen(layout.socket_name, sizeof layout.socket_name);
  if (length == 0 || length == sizeof layout.socket_name) {
    return failure(Code::invalid_argument, "this unique id is damaged: it names no socket");
  }
  return UniqueId{std::string(layout.socket_name, length), layout.token};
}

}  // namespace seto
