#include "src/command/run/messages.h"

#include <cstring>

#include "src/base/text.h"
#include "src/command/commands.h"

namespace seto::command {
namespace {

struct Head {
  std::uint32_t kind;
  std::int32_t number;
  std::uint32_t size;
};

void put(std::string& bytes, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

void put(std::string& bytes, const std::vector<std::string>& texts) {
  put(bytes, std::to_string(texts.size()));
  for (const std::string& text : texts) put(bytes, text);
}

class Unpacker final {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  std::string text() {
    std::uint32_t size = 0;
    if (bytes_.size() < sizeof size) return wrong();
    std::memcpy(&size, bytes_.data(), sizeof size);
    bytes_.remove_prefix(sizeof size);
    if (bytes_.size() < size) return wrong();
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  std::uint64_t number() {
    const std::optional<std::uint64_t> value = parse_uint(text());
    right_ = right_ && value.has_value();
    return value.value_or(0);
  }
  std::vector<std::string> texts() {
    std::vector<std::string> all;
    for (std::uint64_t left = number(); left > 0 && right_; --left) all.push_back(text());
    return all;
  }
  [[nodiscard]] bool right() const { return right_ && bytes_.empty(); }

 private:
  std::string wrong() {
    right_ = false;
    return {};
  }

  std::string_view bytes_;
  bool right_ = true;
};

}  // namespace

std::string encode(Message::Kind kind, int number, std::string_view body) {
  const Head head{static_cast<std::uint32_t>(kind), number, static_cast<std::uint32_t>(body.size())};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes.append(body);
}

Result<std::optional<Message>> MessageReader::next() {
  Head head;
  if (unread_.size() - offset_ < sizeof head) return std::optional<Message>();
  std::memcpy(&head, unread_.data() + offset_, sizeof head);
  if (head.kind > static_cast<std::uint32_t>(Message::Kind::failed) || head.size > kMessageLimit)
    return failure(Code::remote_error, "the remote shell sent bytes that are not messages of seto");
  if (unread_.size() - offset_ < sizeof head + head.size) return std::optional<Message>();
  Message message{static_cast<Message::Kind>(head.kind), head.number, unread_.substr(offset_ + sizeof head, head.size)};
  offset_ += sizeof head + head.size;
  if (offset_ == unread_.size() || offset_ > kMessageLimit) {
    unread_.erase(0, offset_);
    offset_ = 0;
  }
  return std::optional<Message>(std::move(message));
}

std::string encode(const Assignment& assignment) {
  std::string bytes;
  put(bytes, assignment.program.arguments);
  put(bytes, assignment.program.variables);
  put(bytes, assignment.program.directory);
  put(bytes, assignment.program.root);
  put(bytes, std::to_string(assignment.program.ranks));
  put(bytes, std::to_string(assignment.grace_ms));
  put(bytes, std::to_string(assignment.ranks.size()));
  for (const int rank : assignment.ranks) put(bytes, std::to_string(rank));
  return bytes;
}

Result<Assignment> decode_assignment(std::string_view bytes) {
  Unpacker from(bytes);
  Assignment assignment;
  assignment.program.arguments = from.texts();
  assignment.program.variables = from.texts();
  assignment.program.directory = from.text();
  assignment.program.root = from.text();
  assignment.program.ranks = static_cast<int>(from.number());
  assignment.grace_ms = from.number();
  for (const std::string& text : from.texts()) assignment.ranks.push_back(static_cast<int>(parse_uint(text).value_or(0)));
  if (!from.right() || assignment.program.arguments.empty())
    return failure(Code::remote_error, "the remote shell sent an assignment without valid ranks");
  return assignment;
}

std::string agent_greeting() { return std::string(kGreetingMark) + version_text() + "\n"; }

}  // namespace seto::command
