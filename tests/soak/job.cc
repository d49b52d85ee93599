#include "tests/soak/job.h"

#include <algorithm>
#include <cctype>

namespace seto::soak {

CallResult call_result_of(setoResult_t code) {
  if (code == setoSuccess || code == setoInProgress) return {code, {}};
  return {code, setoGetLastError(nullptr)};
}

// "rank 1", but not "rank 12"; or "ranks 0, 1 and 2".
bool CallResult::names(int rank) const {
  const std::string number = std::to_string(rank);
  for (std::size_t at = text.find("rank"); at != std::string::npos; at = text.find("rank", at + 1)) {
    std::size_t next = at + 4 + (text.compare(at + 4, 1, "s") == 0 ? 1 : 0);
    for (bool more = true; more;) {
      next = text.find_first_not_of(' ', next);
      if (next == std::string::npos || std::isdigit(static_cast<unsigned char>(text[next])) == 0) break;
      const std::size_t end = std::min(text.size(), text.find_first_not_of("0123456789", next));
      if (text.compare(next, end - next, number) == 0) return true;
      more = text.compare(end, 2, ", ") == 0 || text.compare(end, 5, " and ") == 0;
      next = end + (text.compare(end, 2, ", ") == 0 ? 2 : 5);
    }
  }
  return false;
}

std::string CallResult::description() const { return std::string(setoGetErrorString(code)) + " (" + text + ")"; }

}  // namespace seto::soak
