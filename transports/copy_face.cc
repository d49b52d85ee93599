#include "transports/copy_face.h"

#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

template <class Face, class Queue>
Post post(Face& face, Queue& posted, const typename Queue::Item& item) {
  face.progress();
  if (posted.full()) return Post::full;
  posted.push(item);
  face.progress();
  return Post::accepted;
}

}  // namespace

Post CopySender::post_send(Mark mark, const SegmentView<const std::byte>& segment) {
  SETO_CHECK(segment.size <= slot_size_);
  return post(*this, posted_, {mark, segment});
}

void CopySender::progress() {
  for (; !posted_.empty(); posted_.pop()) {
    const auto& [mark, segment] = posted_.front();
    std::byte* const slot = stream_.acquire(mark);
    if (slot == nullptr) return;
    if (segment.size > 0) std::memcpy(slot, segment.data, segment.size);
    stream_.commit(mark);
  }
}

Post CopyReceiver::post_receive(Mark mark, const SegmentView<std::byte>& segment) {
  SETO_CHECK(segment.size <= slot_size_);
  return post(*this, posted_, {mark, segment});
}

void CopyReceiver::progress() {
  for (; !posted_.empty(); posted_.pop()) {
    const auto& [mark, segment] = posted_.front();
    const std::byte* const message = stream_.front(mark);
    if (message == nullptr) return;
    if (segment.size > 0) std::memcpy(segment.data, message, segment.size);
    stream_.release(mark);
  }
}

}  // namespace seto
