#include "src/control/overlay/flood.h"

#include <algorithm>
#include <cstring>

namespace seto {
namespace {

struct Head {
  std::uint64_t number = 0;
  std::uint32_t origin = 0;
  std::uint32_t zero = 0;
};
static_assert(sizeof(Head) == Flood::kHeadSize);

}  // namespace

std::vector<std::uint32_t> overlay_neighbours(std::uint32_t own, std::uint32_t members) {
  std::vector<std::uint32_t> neighbours;
  for (std::uint64_t distance = 1; distance < members; distance *= 2) {
    neighbours.push_back(static_cast<std::uint32_t>((own + distance) % members));
    neighbours.push_back(static_cast<std::uint32_t>((own + members - distance) % members));
  }
  std::sort(neighbours.begin(), neighbours.end());
  neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  return neighbours;
}

Flood::Flood(std::uint32_t own, std::uint32_t members)
    : own_(own), neighbours_(overlay_neighbours(own, members)), last_(members) {}

std::string Flood::say(std::string_view bytes) {
  const Head head{++last_[own_], own_, 0};
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  message.append(bytes);
  return message;
}

Result<Flood::Heard> Flood::hear(std::string_view message) {
  Head head;
  if (message.size() < sizeof head)
    return failure(Code::remote_error, "a message of an overlay has %zu bytes, fewer than its head", message.size());
  std::memcpy(&head, message.data(), sizeof head);
  if (head.origin >= last_.size() || head.zero != 0 || head.number == 0)
    return failure(Code::remote_error, "a message of an overlay has a head that no member writes");
  std::uint64_t& last = last_[head.origin];
  if (head.number <= last) return Heard{false, head.origin, {}};
  if (head.origin == own_ || head.number != last + 1)
    return failure(Code::remote_error, "message %llu of member %u of an overlay came after message %llu",
                   static_cast<unsigned long long>(head.number), head.origin, static_cast<unsigned long long>(last));
  last = head.number;
  return Heard{true, head.origin, message.substr(sizeof head)};
}

}  // namespace seto
