#include "transports/resume/hello.h"

#include <cstring>

namespace seto::resume {
namespace {

constexpr std::uint32_t kMagic = 0x0e70'5e52;
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCountAt = kHelloFixed + 8;

// The fields before Heard, in their order on the wire.
struct Fixed {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t link = 0;
  std::uint64_t sender = 0;
  std::uint64_t receiver = 0;
  std::uint32_t attempt = 0;
  std::uint32_t path = 0;
};
static_assert(sizeof(Fixed) == kHelloFixed);

Status refuse(const char* what) { return failure(Code::remote_error, "a connection cannot be continued: %s", what); }

}  // namespace

std::size_t encode(const Hello& hello, HelloBytes& bytes) {
  const Fixed fixed{kMagic, kVersion, hello.link, hello.sender, hello.receiver, hello.attempt, hello.path};
  std::memcpy(bytes.data(), &fixed, sizeof fixed);
  HeardBytes heard;
  const std::size_t size = encode(hello.heard, heard);
  std::memcpy(bytes.data() + sizeof fixed, heard.data(), size);
  return sizeof fixed + size;
}

Result<std::size_t> length_of_hello(std::span<const std::byte> beginning) {
  if (beginning.size() < kCountAt + sizeof(std::uint64_t)) return refuse("its hello is too short");
  std::uint32_t magic = 0;
  std::uint64_t count = 0;
  std::memcpy(&magic, beginning.data(), sizeof magic);
  std::memcpy(&count, beginning.data() + kCountAt, sizeof count);
  if (magic != kMagic) return refuse("what came first is no hello");
  if (count > Heard::kMostRanges) return refuse("its hello has too many ranges");
  return kHelloFixed + 16 + 8 * static_cast<std::size_t>(count);
}

Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  SETO_ASSIGN(const std::size_t length, length_of_hello(bytes));
  if (bytes.size() != length) return refuse("its hello has another size");
  Fixed fixed;
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  if (fixed.version != kVersion)
    return failure(Code::remote_error, "a connection cannot be continued: the peer's hello has version %u, this library's has %u",
                   fixed.version, kVersion);
  Hello hello{fixed.link, fixed.sender, fixed.receiver, fixed.attempt, fixed.path, {}};
  SETO_ASSIGN(hello.heard, decode_heard(bytes.subspan(kHelloFixed)));
  return hello;
}

Status admit(const Hello& hello, const Expected& expected) {
  if (hello.link != expected.link) return refuse("the hello belongs to another connection");
  if (hello.sender != expected.peer || hello.receiver != expected.own)
    return refuse("one of its ends has started again and has forgotten what it heard");
  if (hello.path >= expected.paths) return refuse("it has fewer paths than the hello names");
  if (hello.attempt <= expected.latest_attempt) return refuse("the hello is older than another one of this path");
  return {};
}

}  // namespace seto::resume
