#include "src/bootstrap/frames.h"

#include <cstring>
#include <type_traits>

#include "src/bootstrap/bootstrap.h"

namespace seto {
namespace {

constexpr std::uint32_t kMagic = 0x5e70b007;

struct Header {
  std::uint32_t magic;
  FrameKind kind;
  std::uint64_t size;
};

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
  put(body, hello);
  return encode_frame(FrameKind::hello, body);
}

std::string encode_contribution(std::uint64_t remaining_ms, std::string_view message) {
  std::string body;
  put(body, remaining_ms);
  body += message;
  return encode_frame(FrameKind::contribution, body);
}

std::string encode_result(const std::vector<std::string>& messages) {
  std::string body;
  for (const std::string& message : messages) put(body, static_cast<std::uint64_t>(message.size()));
  for (const std::string& message : messages) body += message;
  return encode_frame(FrameKind::result, body);
}

std::string encode_failure(const Status& status) {
  std::string body;
  put(body, status.code());
  body += status.text();
  return encode_frame(FrameKind::failure, body);
}

std::optional<Hello> decode_hello(std::string_view body) {
  Hello hello;
  if (!take(body, hello) || !body.empty()) return std::nullopt;
  return hello;
}

std::optional<Contribution> decode_contribution(std::string_view body) {
  Contribution contribution{};
  if (!take(body, contribution.remaining_ms)) return std::nullopt;
  contribution.message = body;
  return contribution;
}

std::optional<std::vector<std::string>> decode_result(std::string_view body, int size) {
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size));
  for (std::uint64_t& length : lengths) {
    if (!take(body, length)) return std::nullopt;
  }
  std::vector<std::string> messages;
  for (const std::uint64_t length : lengths) {
    if (length > body.size()) return std::nullopt;
    messages.emplace_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  if (!body.empty()) return std::nullopt;
  return messages;
}

Status decode_failure(std::string_view body) {
  Code code{};
  if (!take(body, code) || code == Code::ok || code > Code::internal) {
    return failure(Code::remote_error, "the rendezvous failed, and said why in a way that cannot be read");
  }
  return {code, std::string(body)};
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
