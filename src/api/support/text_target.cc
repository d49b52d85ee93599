#include "src/api/support/text_target.h"

#include <algorithm>
#include <cstring>

#include "src/api/support/handles.h"

namespace seto::api {

Status check_target(const Target& target) {
  if (target.text == nullptr && target.capacity > 0) return null_argument("text");
  return {};
}

Status write(const Target& target, const Result<std::string>& text) {
  if (!text.ok()) return text.status();
  if (target.size != nullptr) *target.size = text.value().size();
  if (target.capacity == 0) return {};
  const std::size_t taken = std::min(target.capacity - 1, text.value().size());
  std::memcpy(target.text, text.value().data(), taken);
  target.text[taken] = '\0';
  return {};
}

}  // namespace seto::api
