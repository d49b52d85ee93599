#include "src/bootstrap/unique_id.h"

#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

constexpr std::uint64_t kMagic = 0x31644965'6f746553;  // "SetoeId1" in the bytes of a little-endian machine
constexpr std::uint32_t kVersion = 2;                  // version 1 had only the local socket

struct Layout {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t serves;
  Token token;
  RendezvousAddressBytes address;
};
static_assert(sizeof(Layout) == kUniqueIdSize);

int digit_of(char header) {
  if (header >= '0' && header <= '9') return header - '0';
  if (header >= 'a' && header <= 'f') return header - 'a' + 10;
  if (header >= 'A' && header <= 'F') return header - 'A' + 10;
  return -1;
}

}  // namespace

UniqueIdBytes encode(const UniqueId& id) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kVersion;
  layout.serves = static_cast<std::uint32_t>(id.serves);
  layout.token = id.token;
  SETO_CHECK(!id.address.empty());
  layout.address = encode(id.address);
  UniqueIdBytes bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

Result<UniqueId> decode(const UniqueIdBytes& bytes) {
  Layout layout;
  std::memcpy(&layout, bytes.data(), sizeof layout);
  if (layout.magic != kMagic) {
    return failure(Code::invalid_argument,
                   "this is not a unique id: its first bytes are wrong; pass all %zu bytes from the rank that made it",
                   kUniqueIdSize);
  }
  if (layout.version != kVersion) {
    return failure(Code::invalid_argument,
                   "a unique id of version %u, made by another version of the library: this one knows version %u only; install "
                   "the same version on every machine",
                   layout.version, kVersion);
  }
  UniqueId id;
  id.serves = static_cast<UniqueId::Serves>(layout.serves);
  const bool known = id.serves == UniqueId::Serves::communicator || id.serves == UniqueId::Serves::job;
  auto address = decode_rendezvous_address(layout.address);
  if (!known || !address || address->empty()) {
    return failure(Code::invalid_argument, "this unique id is damaged: it does not say where its rendezvous is");
  }
  id.token = layout.token;
  id.address = std::move(*address);
  return id;
}

std::string hex_text(const UniqueIdBytes& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

Result<UniqueIdBytes> parse_unique_id(std::string_view hex) {
  UniqueIdBytes bytes{};
  bool fits = hex.size() == 2 * bytes.size();
  for (std::size_t index = 0; fits && index < bytes.size(); ++index) {
    const int high = digit_of(hex[2 * index]);
    const int low = digit_of(hex[2 * index + 1]);
    fits = high >= 0 && low >= 0;
    bytes[index] = static_cast<char>(high * 16 + low);
  }
  if (fits) return bytes;
  return failure(Code::invalid_argument,
                 "a unique id as text has %zu hexadecimal digits: this one has %zu letters or others than digits",
                 2 * bytes.size(), hex.size());
}

Secret rendezvous_key(const Token& token) {
  return Secret::of_text({reinterpret_cast<const char*>(token.data()), token.size()}).derive("seto rendezvous");
}

}  // namespace seto
