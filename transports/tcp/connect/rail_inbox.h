#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace seto::tcp {

enum class RailWord : std::uint8_t {
  begin = 1,  // the end that selects begins a set-up
  message,    // of the set-up
  broken,     // the rail of that set-up, or the set-up itself, has failed at the sender
  usable,     // the end that follows: so many rails may work at it now, in place of the number
};

// In front of each part of a message about the rails of a link.
struct RailHead {
  RailWord word = RailWord::message;
  std::uint8_t rail = 0;
  std::uint8_t last = 1;  // part of the message
  std::uint8_t reserved = 0;
  std::uint32_t number = 0;  // of the set-up
};
static_assert(sizeof(RailHead) == 8);

// Messages about the rails of one link, from the time when their parts arrive until the link takes them, one at a time and in
// order: what ends a set-up must have had its effect before the message that begins the next one is looked at. The bytes come
// from the peer.
class RailInbox final {
 public:
  static constexpr std::size_t kMostMessages = 64;
  static constexpr std::size_t kMostBytes = std::size_t{512} << 10;
  static constexpr std::size_t kLongestMessage = std::size_t{256} << 10;

  struct Message {
    RailHead head;
    std::string bytes;
  };

  // A part that makes no sense is dropped. One more than has room empties the inbox, and is_overrun() says so: the messages that
  // are lost may have told that the peer has lost rails.
  void add(std::string_view part) {
    RailHead head;
    if (part.size() < sizeof head || overrun_) return;
    std::memcpy(&head, part.data(), sizeof head);
    if (head.word < RailWord::begin || head.word > RailWord::usable) return;
    part.remove_prefix(sizeof head);
    if (head.word != RailWord::message) return keep({head, {}});
    if (head.number != begun_.head.number || head.rail != begun_.head.rail) begun_ = {};
    begun_.head = head;
    if (begun_.bytes.size() + part.size() > kLongestMessage) return overrun();
    begun_.bytes.append(part);
    if (head.last != 0) keep(std::exchange(begun_, {}));
  }
  [[nodiscard]] std::optional<Message> take() {
    if (messages_.empty()) return std::nullopt;
    Message first = std::move(messages_.front());
    messages_.pop_front();
    bytes_ -= first.bytes.size();
    return first;
  }
  [[nodiscard]] bool empty() const { return messages_.empty() && !overrun_; }
  // True once.
  [[nodiscard]] bool is_overrun() { return std::exchange(overrun_, false); }
  void clear() {
    messages_.clear();
    begun_ = {};
    bytes_ = 0;
  }

 private:
  void keep(Message message) {
    if (messages_.size() == kMostMessages || bytes_ + message.bytes.size() > kMostBytes) return overrun();
    bytes_ += message.bytes.size();
    messages_.push_back(std::move(message));
  }
  void overrun() {
    clear();
    overrun_ = true;
  }

  std::deque<Message> messages_;
  Message begun_;  // of which parts have come
  std::size_t bytes_ = 0;
  bool overrun_ = false;
};

}  // namespace seto::tcp
