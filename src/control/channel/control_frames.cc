#include "src/control/channel/control_frames.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are sent as they are in memory");

struct Head {
  std::uint16_t kind;
  std::uint16_t size;
  std::uint32_t from;
  std::uint64_t key;
  std::uint32_t to;
  std::uint32_t unused;
};
static_assert(sizeof(Head) == kFrameHeadSize);

Head head_of(std::string_view bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

bool valid(const Head& head) {
  return head.kind >= static_cast<std::uint16_t>(ControlFrameKind::ping) &&
         head.kind <= static_cast<std::uint16_t>(ControlFrameKind::resumed) && head.size <= kFrameLimit - kFrameHeadSize &&
         head.unused == 0;
}

}  // namespace

std::string encode(const ControlFrame& frame) {
  SETO_CHECK(frame.bytes.size() <= kFrameLimit - kFrameHeadSize);
  const Head head{
      static_cast<std::uint16_t>(frame.kind), static_cast<std::uint16_t>(frame.bytes.size()), frame.from, frame.key, frame.to, 0};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes.append(frame.bytes);
}

Status ControlFrameReader::feed(std::string_view bytes, const std::function<void(const ControlFrame&)>& take) {
  while (!bytes.empty()) {
    const std::size_t size = std::min(wanted(), bytes.size());
    part_.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (part_.size() < kFrameHeadSize) return {};
    const Head head = head_of(part_);
    if (!valid(head)) return failure(Code::remote_error, "its process sent a malformed control frame");
    if (wanted() > 0) continue;
    take(
        {static_cast<ControlFrameKind>(head.kind), head.from, head.key, head.to, std::string_view(part_).substr(kFrameHeadSize)});
    part_.clear();
  }
  return {};
}

// The bytes that are missing of the head or, after the head, of the frame.
std::size_t ControlFrameReader::wanted() const {
  if (part_.size() < kFrameHeadSize) return kFrameHeadSize - part_.size();
  return kFrameHeadSize + head_of(part_).size - part_.size();
}

}  // namespace seto
