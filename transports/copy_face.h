#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

// The copy face of a stream, over its slot face: whole messages are handed over, from and into memory of the caller. For engines
// that cannot work in slots, and the yardstick for transports that bring a copy face of their own.
//
// Nothing blocks, allocates or calls back. Messages are posted slice by slice, operation by operation. As on the slot face, all
// calls of one stream come from one thread at a time.
namespace seto {

enum class Post : std::uint8_t {
  accepted,
  full,  // post again once the count of completed ones has grown
};

// A view of the caller's memory and what the transport knows it by, both resolved when a launch is bound.
template <class Byte>
struct SegmentView {
  Byte* data = nullptr;
  std::size_t size = 0;            // at most the slot size of the stream
  std::uint64_t registration = 0;  // 0: none, for transports that need none
};

inline constexpr std::size_t kMostPosted = 8;  // messages of one stream that wait

namespace copy_face {

// What was posted and is not completed, oldest first.
template <class Byte>
class Queue final {
 public:
  struct Item {
    Mark mark = 0;
    SegmentView<Byte> segment;
  };

  [[nodiscard]] bool full() const { return last_ - first_ == kMostPosted; }
  [[nodiscard]] bool empty() const { return last_ == first_; }
  [[nodiscard]] const Item& front() const { return items_[first_ % kMostPosted]; }
  void push(const Item& item) { items_[last_++ % kMostPosted] = item; }
  void pop() { ++first_; }
  // Only grows.
  [[nodiscard]] std::uint64_t completed() const { return first_; }

 private:
  std::array<Item, kMostPosted> items_{};
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace copy_face

class CopySender final {
 public:
  CopySender(SendStream& stream, std::size_t slot_size) : stream_(stream), slot_size_(slot_size) {}

  // The view stays untouched until the message is completed; then it may be reused, whatever the peer does.
  Post post_send(Mark mark, const SegmentView<const std::byte>& segment);
  // Goes on with what was posted, as far as the peer lets it.
  void progress();
  [[nodiscard]] std::uint64_t sends_completed() const { return posted_.completed(); }

 private:
  SendStream& stream_;
  std::size_t slot_size_;
  copy_face::Queue<const std::byte> posted_;
};

class CopyReceiver final {
 public:
  CopyReceiver(ReceiveStream& stream, std::size_t slot_size) : stream_(stream), slot_size_(slot_size) {}

  // The view's size is the message's: both ends derive it from the plan.
  Post post_receive(Mark mark, const SegmentView<std::byte>& segment);
  void progress();
  [[nodiscard]] std::uint64_t receives_completed() const { return posted_.completed(); }

 private:
  ReceiveStream& stream_;
  std::size_t slot_size_;
  copy_face::Queue<std::byte> posted_;
};

}  // namespace seto
