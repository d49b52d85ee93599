#include "src/bootstrap/rendezvous/frames.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "src/bootstrap/bootstrap.h"

namespace seto {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are sent in the byte order of memory");

constexpr std::uint32_t kMagic = 0x5e70b008;
using Length = std::uint32_t;  // length of one message
static_assert(kGatherMessageLimit <= UINT32_MAX);

struct Header {
  std::uint32_t magic;
  FrameKind kind;
  std::uint64_t size;
};
static_assert(sizeof(Header) == kFrameHeaderSize);

template <class T>
void put(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
bool take(std::string_view& bytes, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

std::string encode_frame(FrameKind kind, std::string_view body) {
  std::string bytes;
  bytes.reserve(sizeof(Header) + body.size());
  put(bytes, Header{kMagic, kind, body.size()});
  bytes += body;
  return bytes;
}

std::string encode_hello(const Hello& hello) {
  std::string body;
  put(body, hello.number);
  put(body, hello.rank);
  put(body, hello.size);
  put(body, hello.remaining_ms);
  put(body, encode(hello.address));
  return encode_frame(FrameKind::hello, body);
}

std::string encode_ready(const RendezvousAddress& parent) {
  if (parent.empty()) return encode_frame(FrameKind::ready, {});
  std::string body;
  put(body, encode(parent));
  return encode_frame(FrameKind::ready, body);
}

std::string encode_contribution(std::uint64_t remaining_ms, std::string_view message) {
  std::string body;
  put(body, remaining_ms);
  body += message;
  return encode_frame(FrameKind::contribution, body);
}

std::string encode_result(FrameKind kind, const std::vector<std::string>& messages) {
  std::string body;
  for (const std::string& message : messages) put(body, static_cast<Length>(message.size()));
  for (const std::string& message : messages) body += message;
  return encode_frame(kind, body);
}

std::string encode_failure(const Status& status) {
  std::string body;
  put(body, status.code());
  body += status.text();
  return encode_frame(FrameKind::failure, body);
}

std::string encode_orphan(Rank child) {
  std::string body;
  put(body, child);
  return encode_frame(FrameKind::orphan, body);
}

std::optional<Hello> decode_hello(std::string_view body) {
  Hello hello;
  RendezvousAddressBytes address;
  if (!take(body, hello.number) || !take(body, hello.rank) || !take(body, hello.size) || !take(body, hello.remaining_ms) ||
      !take(body, address) || !body.empty()) {
    return std::nullopt;
  }
  auto known = decode_rendezvous_address(address);
  if (!known) return std::nullopt;
  hello.address = std::move(*known);
  return hello;
}

std::optional<RendezvousAddress> decode_ready(std::string_view body) {
  if (body.empty()) return RendezvousAddress{};
  RendezvousAddressBytes address;
  if (!take(body, address) || !body.empty()) return std::nullopt;
  return decode_rendezvous_address(address);
}

std::optional<Contribution> decode_contribution(std::string_view body) {
  Contribution contribution{};
  if (!take(body, contribution.remaining_ms)) return std::nullopt;
  contribution.message = body;
  return contribution;
}

std::optional<std::vector<std::string>> decode_result(std::string_view body, int size) {
  const auto count = static_cast<std::size_t>(size);
  if (body.size() / sizeof(Length) < count) return std::nullopt;
  std::vector<Length> lengths(count);
  for (Length& length : lengths) static_cast<void>(take(body, length));
  std::vector<std::string> messages;
  for (const Length length : lengths) {
    if (length > body.size()) return std::nullopt;
    messages.emplace_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  if (!body.empty()) return std::nullopt;
  return messages;
}

Status decode_failure(std::string_view body) {
  Code code{};
  if (!take(body, code) || code == Code::ok || code == Code::in_progress || code > Code::internal) {
    return failure(Code::remote_error, "the rendezvous failed, and the reason that it sent is malformed");
  }
  return {code, std::string(body)};
}

std::optional<Rank> decode_orphan(std::string_view body) {
  Rank child = 0;
  if (!take(body, child) || !body.empty()) return std::nullopt;
  return child;
}

std::size_t result_limit(int size) {
  return kGatherTotalLimit + sizeof(Length) * static_cast<std::size_t>(std::clamp(size, 1, kBootstrapRankLimit));
}

FrameReader::Outcome FrameReader::next(Frame& frame) {
  if (buffer_.size() < sizeof(Header)) return Outcome::more;
  Header header;
  std::memcpy(&header, buffer_.data(), sizeof header);
  if (header.magic != kMagic || header.size > body_limit_) return Outcome::garbage;
  if (buffer_.size() - sizeof header < header.size) return Outcome::more;
  frame.kind = header.kind;
  frame.body = buffer_.substr(sizeof header, header.size);
  buffer_.erase(0, sizeof header + header.size);
  return Outcome::frame;
}

}  // namespace seto
