#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto::tcp {

// A message of a stream that has begun to arrive.
struct StreamMessage {
  std::byte* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t got = 0;  // bytes that have arrived
  std::uint32_t digest = 0;
  std::uint64_t slice = 0;
  std::uint32_t promised = 0;  // bytes of frames whose header has arrived
  std::uint32_t pending = 0;   // frames that are being read into `data`
  bool there = false;          // at least one frame is complete
  bool used = false;           // of MessageTable
  bool placed = false;         // `data` is the caller's memory
};

// The messages of one operation of a stream, by slice. Its memory grows with the number of messages that it has held at once, and
// not with the numbers of their slices, which a peer chooses. Slices that follow each other are found at the first look.
class MessageTable final {
 public:
  // `most`: messages at once, a power of two.
  explicit MessageTable(std::size_t most) : most_(most) {}

  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] std::size_t capacity() const { return messages_.size(); }
  [[nodiscard]] std::size_t bytes() const { return messages_.capacity() * sizeof(StreamMessage); }

  // Null: no part of it has arrived.
  [[nodiscard]] StreamMessage* find(std::uint64_t slice) {
    if (messages_.empty()) return nullptr;
    StreamMessage& first = messages_[home_of(slice)];
    if (first.used && first.slice == slice) return &first;
    if (displaced_ == 0) return nullptr;
    const auto found = std::find_if(messages_.begin(), messages_.end(),
                                    [slice](const StreamMessage& each) { return each.used && each.slice == slice; });
    return found == messages_.end() ? nullptr : &*found;
  }

  // A new message of a slice that find() does not know. Null: the table is full. Other messages may move.
  [[nodiscard]] StreamMessage* add(std::uint64_t slice) {
    if (held_ == most_) return nullptr;
    // Half of it is free, so that slices which follow each other rarely share a home.
    if (messages_.size() < std::min(most_, 2 * (held_ + 1))) grow();
    return &put(slice);
  }

  void remove(StreamMessage& message) {
    if (&message != &messages_[home_of(message.slice)]) --displaced_;
    --held_;
    message = StreamMessage{};
  }

  // remove() may be called for the visited message.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (StreamMessage& message : messages_)
      if (message.used) visit(message);
  }

 private:
  static constexpr std::size_t kSmallest = 4;

  [[nodiscard]] std::size_t home_of(std::uint64_t slice) const { return slice & (messages_.size() - 1); }

  StreamMessage& put(std::uint64_t slice) {
    StreamMessage* message = &messages_[home_of(slice)];
    if (message->used) {
      message = &*std::find_if(messages_.begin(), messages_.end(), [](const StreamMessage& each) { return !each.used; });
      ++displaced_;
    }
    ++held_;
    message->slice = slice;
    message->used = true;
    return *message;
  }

  void grow() {
    std::vector<StreamMessage> before(std::min(most_, std::max(kSmallest, 2 * messages_.size())));
    before.swap(messages_);
    held_ = displaced_ = 0;
    for (const StreamMessage& each : before)
      if (each.used) put(each.slice) = each;
  }

  std::size_t most_;
  std::size_t held_ = 0;
  std::size_t displaced_ = 0;  // messages that are not at home
  std::vector<StreamMessage> messages_;
};

}  // namespace seto::tcp
